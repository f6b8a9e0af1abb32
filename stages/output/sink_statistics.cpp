#include "stages/output/sink_statistics.h"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/sentences.h"
#include "pipeline/base/text.h"
#include "pipeline/base/threads.h"
#include "stages/corpus/split_name.h"
#include "stages/features/mel/utterance_steps.h"
#include "stages/row_type.h"

namespace melflow {
namespace {

// Returns those of `names` that statistics: train is computed from.
std::vector<std::string> training_splits(const RowSinkOptions& target,
                                         const std::vector<std::string>& names) {
  const std::vector<std::string>& wanted = target.statistics_splits;
  for (const std::string& name : wanted)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw RunError(in_sentences(fmt::format(
          "{}: statistics_splits: no file is in the split '{}'{}; the splits are {}", target.path,
          excerpt(name), did_you_mean(name, names), fmt::join(names, ", "))));
  std::vector<std::string> out;
  for (const std::string& name : names)
    if (wanted.empty() ? is_training_split(name)
                       : std::find(wanted.begin(), wanted.end(), name) != wanted.end())
      out.push_back(name);
  if (out.empty())
    throw RunError(fmt::format(
        "{}: statistics: train: which of the splits is for training? None is called "
        "train, training, tr or trn, or begins so (train-clean-100); the splits are {}. "
        "Name it, as in statistics_splits: [{}], or set statistics: all",
        target.path, fmt::join(names, ", "), names.front()));
  return out;
}

RecordingGroups groups_of(const RowSinkOptions& target, const FeatureInfo& info,
                          const RunContext& run) {
  constexpr std::size_t kMostValues = std::size_t{1} << 22;
  RecordingGroups out(listed_texts(run, target.statistics_by, target.path + ": statistics_by"));
  const auto columns = static_cast<std::size_t>(info.columns);
  if (out.names().size() * columns > kMostValues)
    throw RunError(fmt::format(
        "{}: statistics_by: there are {} different texts in '{}', and with {} columns each at most "
        "{} may be; name what several recordings share, such as their speaker",
        target.path, out.names().size(), excerpt(target.statistics_by), columns,
        kMostValues / columns));
  return out;
}

}  // namespace

std::size_t SinkStatistics::kept_memory(const RowSinkOptions& target, const FeatureInfo& info,
                                        const RunContext& run) {
  if (target.statistics_by.empty()) return 0;
  return run.source.count() * sizeof(std::int32_t) + groups_of(target, info, run).names().size() *
                                                         static_cast<std::size_t>(info.columns) *
                                                         2 * sizeof(double);
}

SinkStatistics::SinkStatistics(const RowSinkOptions& target, const FeatureInfo& info,
                               const RunContext& run)
    : target_(target), info_(info), counted_{{0, run.ledger.counts().found}} {
  if (target.statistics == StatisticsOf::none) return;
  sums_ = std::make_unique<RowStatistics>(info.frames, info.columns);
  if (!target.statistics_by.empty()) groups_ = groups_of(target, info, run);
  const Manifest* splits = manifest_with_splits(run);
  if (target.statistics != StatisticsOf::train) return;
  if (splits == nullptr) {
    if (target.statistics_splits.empty()) return;
    throw RunError(
        fmt::format("{}: statistics_splits names {}, but the corpus has no splits; remove it for "
                    "the statistics of all rows, or set splits of file_list",
                    target.path, fmt::join(target.statistics_splits, ", ")));
  }
  const std::vector<std::string> chosen = training_splits(target, splits->split_names());
  of_ = fmt::format("{}", fmt::join(chosen, ", "));
  counted_.clear();
  for (const Manifest::SplitRange& range : splits->split_ranges())
    if (std::find(chosen.begin(), chosen.end(), splits->split_name(range.split)) != chosen.end() &&
        range.split >= 0)
      counted_.push_back({range.first, range.last});
}

// Called without the writer's mutex, so that other threads need not wait.
void SinkStatistics::note(const MelBatch& batch, const ItemContext& context) {
  for (std::size_t i = 0; sums_ && i < batch.parts.size(); ++i) {
    const Stream& stream = *context.origin(i).stream;
    // For a sub-item it is not known here which rows of the file these are.
    if (!batch.parts[i] || batch.parts[i]->pending || !counts(stream.index()) ||
        context.is_lost(i) || context.origin(i).sub_item)
      continue;
    const MelPart& part = *batch.parts[i];
    sum(stream.index(), part.first_row, part.row_count, part.data->data(), part.type, part.last);
  }
}

void SinkStatistics::sum(std::size_t file, std::int64_t row, std::int64_t rows,
                         const float* values) {
  if (counts(file)) sum(file, row, rows, values, NumberType::float32, false);
}

// Sums the values as they are stored, so that the sums can be repeated from the output.
void SinkStatistics::sum(std::size_t file, std::int64_t row, std::int64_t rows, const void* values,
                         NumberType type, bool is_last) {
  const std::size_t n = static_cast<std::size_t>(rows) * info_.values_per_row();
  if (target_.dtype == NumberType::float32)
    return sums_->take(file, row, rows, static_cast<const float*>(values), is_last);
  std::vector<std::uint16_t> stored;
  if (type == NumberType::float32) {
    stored.resize(n);
    from_float({static_cast<const float*>(values), n}, target_.dtype, stored.data());
    values = stored.data();
  }
  std::vector<float> rounded(n);
  to_float(values, n, target_.dtype, rounded.data());
  sums_->take(file, row, rows, rounded.data(), is_last);
}

void SinkStatistics::drop(std::size_t file) {
  if (sums_) sums_->drop(file);
}

void SinkStatistics::close(const std::vector<PlacedPart>& ready) {
  for (const PlacedPart& p : ready) {
    if (!p.part || !counts(p.file)) continue;
    if (p.origin.sub_item && !p.part->pending)
      sum(p.file, p.begin + p.part->first_row, p.part->row_count, p.part->data->data(),
          p.part->type, false);
    if (p.file_rows >= 0) sums_->close(p.file);
  }
}

void SinkStatistics::settle(const RunContext& run, const RowOrder& order,
                            const OutputSections& sections, const Files& files, bool is_complete) {
  if (!sums_) return;
  if (is_stale_) sum_again(run, order, sections, files);
  settled_ = sums_->sums().statistics();
  settled_->is_applied = target_.normalize && is_complete;
  settled_->of = of_;
  if (groups_ && is_complete) settled_->groups = of_groups(run, order, sections, files);
}

// Sums all rows again, from the files: some were removed after they were added, or were there
// before.
void SinkStatistics::sum_again(const RunContext& run, const RowOrder& order,
                               const OutputSections& sections, const Files& files) {
  sums_ = std::make_unique<RowStatistics>(info_.frames, info_.columns);
  const std::vector<std::int64_t> offsets = order.offsets();
  const std::size_t found = run.ledger.counts().found;
  for (std::size_t i = 0, section = 0; i < found; ++i) {
    while (i >= sections.end(section)) ++section;
    if (counts(i)) read_again(run, order, i, *files[section], offsets[i], *sums_);
  }
}

// Adds a recording's rows, of which `first` is the first in the file.
void SinkStatistics::read_again(const RunContext& run, const RowOrder& order, std::size_t recording,
                                RowPartFile& file, std::int64_t first, RowStatistics& to) const {
  std::vector<float> values;
  for (std::int64_t row = 0; row < order.rows(recording); row += file.rows_at_once()) {
    const std::int64_t n = std::min(file.rows_at_once(), order.rows(recording) - row);
    values.resize(static_cast<std::size_t>(n) * info_.values_per_row());
    {
      const std::lock_guard lock(reading_);  // files of chunks are read by one thread at a time
      file.read(first + row, n, values.data());
    }
    if (first_not_finite(values.data(), values.size(), NumberType::float32, NumberType::float32) >=
        0)
      throw RunError(
          fmt::format("{}: rows of {} are not finite (earlier versions kept such "
                      "rows); rebuild it (overwrite: true)",
                      file.target(), run.source.name(recording)));
    to.take(recording, row, n, values.data(), false);
  }
  to.close(recording);
}

// Reads the rows of one group after the other, so that exact sums of a few are held at a time, in
// place of those of all. That also makes the result the same after an update, a merge or a resumed
// run.
GroupStatistics SinkStatistics::of_groups(const RunContext& run, const RowOrder& order,
                                          const OutputSections& sections,
                                          const Files& files) const {
  struct Member {
    std::size_t recording, section;
  };
  std::vector<std::vector<Member>> members(groups_->names().size());
  const std::vector<std::int64_t> offsets = order.offsets();
  const std::size_t found = run.ledger.counts().found;
  for (std::size_t i = 0, section = 0; i < found; ++i) {
    while (i >= sections.end(section)) ++section;
    if (const std::int64_t group = groups_->of(i); group >= 0 && order.rows(i) > 0)
      members[static_cast<std::size_t>(group)].push_back({i, section});
  }
  std::vector<ColumnStatistics> of(members.size());
  std::atomic<std::size_t> next{0};
  on_threads(run.workers, [&] {
    for (std::size_t g = 0; (g = next.fetch_add(1)) < members.size();) {
      if (members[g].empty()) continue;
      RowStatistics sums(info_.frames, info_.columns);
      for (const Member& m : members[g])
        read_again(run, order, m.recording, *files[m.section], offsets[m.recording], sums);
      of[g] = sums.sums().statistics();
    }
  });
  GroupStatistics out{
      .by = target_.statistics_by, .names = {}, .frames = {}, .mean = {}, .std = {}};
  for (std::size_t g = 0; g < of.size(); ++g) {
    if (members[g].empty()) continue;
    out.names.emplace_back(groups_->names()[g]);
    out.frames.push_back(of[g].frames);
    out.mean.insert(out.mean.end(), of[g].mean.begin(), of[g].mean.end());
    out.std.insert(out.std.end(), of[g].std.begin(), of[g].std.end());
    of[g] = {};
  }
  return out;
}

void SinkStatistics::normalize(std::size_t recording, RowPartFile& file, std::int64_t from,
                               std::int64_t rows) const {
  const std::int64_t group = groups_ ? groups_->of(recording) : -1;
  const auto step = scaling_step(
      *settled_,
      group < 0 ? -1 : settled_->groups->find(groups_->names()[static_cast<std::size_t>(group)]));
  const std::int64_t frames = std::max(info_.frames, 1);
  std::vector<float> values;
  for (std::int64_t first = 0; first < rows; first += file.rows_at_once()) {
    const std::int64_t n = std::min(file.rows_at_once(), rows - first);
    values.resize(static_cast<std::size_t>(n) * info_.values_per_row());
    file.read(from + first, n, values.data());
    MemoryRows utterance(values.data(), n * frames, info_.columns);
    step->run(utterance, utterance);
    file.write(from + first, values.data(), n);
  }
}

}  // namespace melflow
