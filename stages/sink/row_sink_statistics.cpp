// What a sink of rows knows of their columns: summed while rows come, settled when all are there.
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>

#include "stages/listing/manifest.h"
#include "stages/sink/row_sink.h"

namespace melflow {

// Of a batch's finished rows, before anybody else has to wait.
void RowSink::note(const MelBatch& batch, const ItemContext& context) {
  const std::int64_t frames = std::max(info_->frames, 1);
  for (std::size_t i = 0; i < batch.parts.size(); ++i) {
    const Stream& stream = *context.origin(i).stream;
    if (!batch.parts[i] || batch.parts[i]->pending || !counts(stream.index()) || stream.failed())
      continue;
    const MelPart& part = *batch.parts[i];
    auto moments = ColumnMoments::of(part.values(), part.row_count * frames, info_->columns);
    const std::lock_guard lock(mutex_);
    statistics_->take(stream.index(), part.first_row, std::move(moments));
  }
}

bool RowSink::counts(std::size_t file) const { return statistics_ && file < counted_; }

void RowSink::close_statistics(const std::vector<PlacedPart>& ready) {
  for (const PlacedPart& p : ready)
    if (p.part && p.file_rows >= 0 && counts(p.file)) statistics_->close(p.file);
}

// All rows are at their place.
void RowSink::settle_statistics(RunContext& run) {
  if (statistics_stale_) {
    // Some rows were taken out again, or were there before: once more, from the files.
    statistics_ = std::make_unique<RowStatistics>(info_->columns);
    const std::vector<std::int64_t> offsets = order_->offsets();
    std::vector<float> values;
    for (std::size_t i = 0, section = 0; i < counted_; ++i) {
      while (i >= end_of(section, run.ledger.counts().found)) ++section;
      for (std::int64_t row = 0; row < order_->rows(i); row += rows_at_once()) {
        const std::int64_t n = std::min(rows_at_once(), order_->rows(i) - row);
        values.resize(static_cast<std::size_t>(n) * info_->values_per_row());
        files_[section]->read(offsets[i] + row, n, values.data());
        statistics_->take(
            i, row,
            ColumnMoments::of(values.data(), n * std::max(info_->frames, 1), info_->columns));
      }
      statistics_->close(i);
    }
  }
  measured_ = statistics_->result();
  measured_->is_applied = target_.normalize;
  const auto* listed = dynamic_cast<const ManifestSource*>(&run.source);
  measured_->of = target_.statistics == StatisticsOf::train && listed != nullptr &&
                          !listed->manifest().split_names().empty()
                      ? listed->manifest().split_names().front()
                      : "all";
}

void RowSink::normalize_rows(const RunContext& run, std::size_t section) {
  std::vector<double> std = measured_->std;
  for (double& s : std)
    if (s == 0) s = 1;
  const auto step = fixed_step(measured_->mean, std);
  const std::int64_t rows = order_->total(section), frames = std::max(info_->frames, 1);
  RowPartFile& file = *files_[section];
  const std::int64_t pieces = (rows + rows_at_once() - 1) / rows_at_once();
  tbb::task_arena(run.workers).execute([&] {
    tbb::parallel_for(std::int64_t{0}, pieces, [&](std::int64_t piece) {
      const std::int64_t first = piece * rows_at_once(), n = std::min(rows_at_once(), rows - first);
      std::vector<float> values(static_cast<std::size_t>(n) * info_->values_per_row());
      file.read(first, n, values.data());
      MemoryRows unit(values.data(), n * frames, info_->columns);
      step->run(unit, unit);
      file.write(first, values.data(), n);
    });
  });
}

}  // namespace melflow
