#include "stages/output/earlier_rows.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/files/part_file.h"
#include "stages/output/formats/feature_fingerprint.h"
#include "stages/output/formats/hdf5.h"
#include "stages/output/formats/stored_json.h"
#include "stages/output/rows/row_hash.h"

namespace melflow {
namespace {

// Takes the rule of utterances out of feature settings; "nearest" where they have none.
std::string take_utterance_rule(StoredJson& stages) {
  std::string out = "nearest";
  for (std::size_t i = 0; i < stages.size(); ++i) {
    StoredJson& stage = stages[i];
    if (stage.value("stage", "") == "utterances") {
      out = stage.value("rule", out);
      stages.erase(i--);
    } else if (stage.contains("inputs")) {
      for (StoredJson& way : stage["inputs"])
        if (way.is_array()) out = take_utterance_rule(way);
    }
  }
  return out;
}

// Refuses an output whose features differ in the rule of its utterances alone; says what to do.
void check_utterance_rule(const FeatureFile& file, const Value& feature_settings) {
  StoredJson there = parse_settings_or_null(file.text("feature_settings"));
  StoredJson here = parse_settings_or_null(to_json(feature_settings));
  if (!there.is_array() || !here.is_array()) return;
  const std::string rule = take_utterance_rule(there), own = take_utterance_rule(here);
  if (rule == own || there != here) return;
  throw RunError(fmt::format(
      "{0}: its utterances were cut by the rule {1}, and by this pipeline they are by {2}, which "
      "gives other samples, so that it cannot be updated; write utterances: {{rule: {1}}} to go on "
      "as it was made, or rebuild it with overwrite: true",
      file.path(), excerpt(rule), own));
}

}  // namespace

std::shared_ptr<EarlierRows> EarlierRows::find(const std::string& path,
                                               const Value& feature_settings, bool may_change,
                                               int sinks) {
  PartFile::recover(path, may_change);
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) {
    if (is_gone(errno)) return nullptr;
    throw RunError(
        fmt::format("{}: cannot be read, so it cannot be updated: {}", path, std::strerror(errno)));
  }
  std::shared_ptr<EarlierRows> out(new EarlierRows(path, sinks));
  const FeatureFile& file = out->file_;
  if (!file.complete())
    throw RunError(path + ": this file is not complete, so it cannot be updated; remove it");
  if (!file.is_index_as_written())
    throw RunError(
        fmt::format("{}: this file is damaged: its index is not what was written, so it "
                    "cannot be updated. Copy it again, or rebuild it with `melflow run` and "
                    "overwrite: true on its sink",
                    path));
  if (file.text("feature_fingerprint") != feature_fingerprint(feature_settings)) {
    check_utterance_rule(file, feature_settings);
    throw RunError(
        fmt::format("{}: holds other features than this pipeline makes, so it cannot be "
                    "updated; `melflow compare {} PIPELINE` says what differs. Write "
                    "elsewhere, or rebuild it with overwrite: true",
                    path, path));
  }
  return out;
}

// Copies through memory, since the rows may be packed, and must be hashed in any case.
void EarlierRows::copy(std::span<const std::size_t> entries, RowPartFile& to,
                       std::int64_t at) const {
  const NumberType type = file_.type();
  const std::size_t row_bytes = to.row_bytes();
  std::int64_t count = 0;
  for (const std::size_t e : entries) count += entry(e).count;
  const std::int64_t first = entry(entries.front()).offset;
  RowHash hash;
  std::size_t of = 0;       // the entry whose rows are hashed
  std::int64_t hashed = 0;  // number of its rows that are hashed
  for (std::int64_t done = 0; done < count; done += to.rows_at_once()) {
    const std::int64_t n = std::min(to.rows_at_once(), count - done);
    std::vector<std::byte> stored;
    {
      const std::lock_guard lock(hdf5_mutex());
      stored = file_.read_stored(static_cast<std::uint64_t>(first + done),
                                 static_cast<std::uint64_t>(n));
    }
    for (std::int64_t row = 0; row < n;) {
      const std::int64_t rows = std::min(n - row, entry(entries[of]).count - hashed);
      hash.add(stored.data() + static_cast<std::size_t>(row) * row_bytes,
               static_cast<std::size_t>(rows) * row_bytes);
      row += rows;
      hashed += rows;
      if (hashed < entry(entries[of]).count) break;
      check_rows(entries[of], hash.value());
      hash.reset();
      hashed = 0;
      ++of;
    }
    const RowRange range{at + done, stored.data(), n, type};
    to.write({&range, 1});
  }
}

// Keeps damaged rows from being copied.
void EarlierRows::check_rows(std::size_t e, std::uint64_t hash) const {
  if (entry(e).rows_hash == 0 || entry(e).rows_hash == hash) return;
  throw RunError(
      fmt::format("{0}: the rows of {1} are not what was written (`melflow verify {0}` lists all "
                  "such files); the output is left as it is; {2}",
                  file_.path(), entry(e).path, cure_of_damaged_rows(file_.path(), sinks_)));
}

std::string cure_of_damaged_rows(const std::string& path, int sinks) {
  if (sinks == 1) return fmt::format("`melflow repair {}` makes them again", path);
  return fmt::format("remove {}, and `melflow update` of its pipeline makes it again", path);
}

bool EarlierRows::has_contents() const {
  return std::any_of(file_.files().begin(), file_.files().end(),
                     [](const FeatureFile::Entry& e) { return e.content != 0; });
}

std::string EarlierRows::computed_by() const {
  return file_.text("backend") + " " + file_.text("instruction_set");
}

std::int64_t EarlierRows::rows_at() const {
  return file_.rows_at() ? static_cast<std::int64_t>(*file_.rows_at()) : -1;
}

std::string EarlierRows::renumbered_labels(const std::vector<std::string>& now) const {
  const std::vector<std::string>& before = file_.labels();
  std::unordered_map<std::string_view, std::size_t> numbers;
  for (const std::string& name : now) numbers.emplace(name, numbers.size());
  std::size_t count = 0;
  std::string example;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto at = numbers.find(before[i]);
    if (at == numbers.end() || at->second == i) continue;
    if (count++ == 0)
      example = fmt::format("{}: {} before, {} now", excerpt(before[i]), i, at->second);
  }
  if (count == 0) return {};
  return fmt::format("{} of {} labels have other numbers than before ({})", count, before.size(),
                     example);
}

}  // namespace melflow
