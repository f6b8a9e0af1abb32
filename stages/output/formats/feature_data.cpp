#include "stages/output/formats/feature_data.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "stages/corpus/split_name.h"
#include "stages/items.h"

namespace melflow {
namespace {

// Checks that a number is at least `least` and below `end`.
void check_number(const FeatureData::Entry& e, const char* what, std::int64_t value,
                  std::int64_t least, std::uint64_t end) {
  if (value < least || (value >= 0 && static_cast<std::uint64_t>(value) >= end))
    throw RunError(fmt::format("{} has {} {}", e.path, what, value));
}

void check_entry(const FeatureData& data, const FeatureData::Entry& e) {
  const std::uint64_t rows = data.rows();
  check_number(e, "its first row at", e.offset, 0, rows + 1);
  check_number(e, "rows:", e.count, 0, rows - static_cast<std::uint64_t>(e.offset) + 1);
  check_number(e, "label number", e.label, -1, data.labels.size());
  check_number(e, "split number", e.split, -1, data.splits.size());
  check_number(e, "status number", static_cast<std::int8_t>(e.status), 0, 4);
  check_number(e, "a sample rate of", e.sample_rate, 0, 1ULL << 32);
  if (!(e.duration >= 0 && e.duration < 1e12))
    throw RunError(fmt::format("{} has a duration of {} s", e.path, e.duration));
}

// Checks that no row has two owners; rows are in file order, except those that an update added.
void check_owners(const FeatureData& data) {
  std::vector<const FeatureData::Entry*> by_row;
  for (const FeatureData::Entry& e : data.files)
    if (e.count > 0) by_row.push_back(&e);
  std::stable_sort(by_row.begin(), by_row.end(),
                   [](const auto* a, const auto* b) { return a->offset < b->offset; });
  std::int64_t next = 0;
  for (const FeatureData::Entry* e : by_row) {
    if (e->offset != next)
      throw RunError(
          fmt::format("the rows of {} begin at {} and not at {}", e->path, e->offset, next));
    next += e->count;
  }
  if (static_cast<std::uint64_t>(next) != data.rows())
    throw RunError(fmt::format("the files have {} rows, and there are {}", next, data.rows()));
}

// Checks names that become those of files, datasets and groups, as the writer did.
void check_names(const FeatureData& data) {
  const auto check = [](const std::string& problem) {
    if (!problem.empty()) throw RunError(problem);
  };
  for (const std::string& split : data.splits) check(split_name_problem(split));
  for (const std::string& column : data.columns) check(column_name_problem(column));
  if (data.statistics && data.statistics->groups)
    check(column_name_problem(data.statistics->groups->by));
}

void check_groups(const GroupStatistics& groups, std::uint64_t bands) {
  const std::size_t n = groups.names.size();
  if (groups.frames.size() != n || groups.mean.size() != n * bands ||
      groups.std.size() != n * bands || !std::is_sorted(groups.names.begin(), groups.names.end()))
    throw RunError(fmt::format(
        "the statistics by {} have {} names, {} numbers of frames, {} means and {} standard "
        "deviations of {} columns, or names that are not in order",
        groups.by, n, groups.frames.size(), groups.mean.size(), groups.std.size(), bands));
}

}  // namespace

std::string FeatureData::text_of(const Entry& entry, const std::string& by) const {
  const auto named = [](const std::vector<std::string>& names, int number) {
    return number < 0 ? std::string() : names[static_cast<std::size_t>(number)];
  };
  const auto column = std::find(columns.begin(), columns.end(), by);
  if (column != columns.end())
    return entry.texts[static_cast<std::size_t>(column - columns.begin())];
  return by == "label"   ? named(labels, entry.label)
         : by == "split" ? named(splits, entry.split)
                         : "";
}

std::uint64_t checked_product(const std::vector<std::uint64_t>& factors, const std::string& what) {
  std::uint64_t out = 1;
  for (const std::uint64_t n : factors)
    if (__builtin_mul_overflow(out, n, &out))
      throw RunError(
          fmt::format("{} cannot have [{}] values or bytes", what, fmt::join(factors, ", ")));
  return out;
}

bool FeatureData::has_samples() const {
  return rows_name() == kWaveformRows || rows_name() == kWindowRows;
}

void check_axes(const FeatureData& data) {
  const std::size_t least = data.has_samples() ? 1 : 2;
  if (data.shape.size() != least && data.shape.size() != least + 1)
    throw RunError(fmt::format("{} has {} axes, not {} or {}", data.rows_name(), data.shape.size(),
                               least, least + 1));
}

void check_contents(const FeatureData& data) {
  if (std::find(data.shape.begin() + 1, data.shape.end(), 0) != data.shape.end())
    throw RunError(fmt::format("rows of shape [{}] have no values", fmt::join(data.shape, ", ")));
  if (!data.band_hz.empty() && data.band_hz.size() != data.bands())
    throw RunError(
        fmt::format("there are {} frequencies of {} columns", data.band_hz.size(), data.bands()));
  for (const double hz : data.band_hz)
    if (hz < 0 || std::isinf(hz)) throw RunError(fmt::format("a band is at {} Hz", hz));
  if (data.statistics) {
    const ColumnStatistics& s = *data.statistics;
    if (s.mean.size() != data.bands() || s.std.size() != data.bands())
      throw RunError(fmt::format("there are {} means and {} standard deviations of {} columns",
                                 s.mean.size(), s.std.size(), data.bands()));
    if (s.groups) check_groups(*s.groups, data.bands());
  }
  check_names(data);
  for (const FeatureData::Entry& e : data.files) check_entry(data, e);
  check_owners(data);
}

void check_format(const std::string& path, const FeatureData& data) {
  if (data.format() == FeatureData::kFormat) return;
  throw RunError(fmt::format(
      "{}: was written by melflow {} in format {}, this program reads format {} only; read it with "
      "that version, or build it again with `melflow run` and overwrite: true on its sink",
      path, data.text("melflow_version"), data.format(), FeatureData::kFormat));
}

}  // namespace melflow
