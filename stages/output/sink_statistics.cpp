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

}  // namespace

SinkStatistics::SinkStatistics(const RowSinkOptions& target, const FeatureInfo& info,
                               const RunContext& run)
    : target_(target), info_(info), counted_{{0, run.ledger.counts().found}} {
  if (target.statistics == StatisticsOf::none) return;
  sums_ = std::make_unique<RowStatistics>(info.frames, info.columns);
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
}

// Sums all rows again, from the files: some were removed after they were added, or were there
// before.
void SinkStatistics::sum_again(const RunContext& run, const RowOrder& order,
                               const OutputSections& sections, const Files& files) {
  sums_ = std::make_unique<RowStatistics>(info_.frames, info_.columns);
  const std::vector<std::int64_t> offsets = order.offsets();
  std::vector<float> values;
  const std::size_t found = run.ledger.counts().found;
  for (std::size_t i = 0, section = 0; i < found; ++i) {
    while (i >= sections.end(section)) ++section;
    if (!counts(i)) continue;
    RowPartFile& file = *files[section];
    for (std::int64_t row = 0; row < order.rows(i); row += file.rows_at_once()) {
      const std::int64_t n = std::min(file.rows_at_once(), order.rows(i) - row);
      values.resize(static_cast<std::size_t>(n) * info_.values_per_row());
      file.read(offsets[i] + row, n, values.data());
      if (first_not_finite(values.data(), values.size(), NumberType::float32,
                           NumberType::float32) >= 0)
        throw RunError(
            fmt::format("{}: rows of {} are not finite (earlier versions kept such "
                        "rows); rebuild it (overwrite: true)",
                        file.target(), run.source.name(i)));
      sums_->take(i, row, n, values.data(), false);
    }
    sums_->close(i);
  }
}

void SinkStatistics::normalize(const RunContext& run, RowPartFile& file, std::int64_t from,
                               std::int64_t rows) const {
  std::vector<double> std = settled_->std;
  for (double& s : std)
    if (s == 0) s = 1;
  const auto step = fixed_step(settled_->mean, std);
  const std::int64_t frames = std::max(info_.frames, 1);
  std::atomic<std::int64_t> next{0};
  on_threads(run.workers, [&] {
    std::vector<float> values;
    for (std::int64_t first = 0; (first = next.fetch_add(file.rows_at_once())) < rows;) {
      const std::int64_t n = std::min(file.rows_at_once(), rows - first);
      values.resize(static_cast<std::size_t>(n) * info_.values_per_row());
      file.read(from + first, n, values.data());
      MemoryRows utterance(values.data(), n * frames, info_.columns);
      step->run(utterance, utterance);
      file.write(from + first, values.data(), n);
    }
  });
}

}  // namespace melflow
