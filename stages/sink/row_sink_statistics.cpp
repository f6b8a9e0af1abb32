// What a sink of rows knows of their columns: summed while rows come, settled when all are there.
#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "pipeline/threads.h"
#include "stages/listing/manifest.h"
#include "stages/sink/row_sink.h"

namespace melflow {

// Of a batch's finished rows, before anybody else has to wait.
void RowSink::note(const MelBatch& batch, const ItemContext& context) {
  for (std::size_t i = 0; i < batch.parts.size(); ++i) {
    const Stream& stream = *context.origin(i).stream;
    if (!batch.parts[i] || batch.parts[i]->pending || !counts(stream.index()) || stream.failed())
      continue;
    const MelPart& part = *batch.parts[i];
    sum(stream.index(), part.first_row, part.row_count, part.data->data(), part.type, part.last);
  }
}

// As they are stored, so that whoever has the output comes to the same sums.
void RowSink::sum(std::size_t file, std::int64_t row, std::int64_t rows, const void* values,
                  NumberType type, bool is_last) {
  const std::size_t n = static_cast<std::size_t>(rows) * info_->values_per_row();
  if (target_.dtype == NumberType::float32)
    return statistics_->take(file, row, rows, static_cast<const float*>(values), is_last);
  std::vector<std::uint16_t> stored;
  if (type == NumberType::float32) {
    stored.resize(n);
    from_float({static_cast<const float*>(values), n}, target_.dtype, stored.data());
    values = stored.data();
  }
  std::vector<float> rounded(n);
  to_float(values, n, target_.dtype, rounded.data());
  statistics_->take(file, row, rows, rounded.data(), is_last);
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
    statistics_ = std::make_unique<RowStatistics>(info_->frames, info_->columns);
    const std::vector<std::int64_t> offsets = order_->offsets();
    std::vector<float> values;
    for (std::size_t i = 0, section = 0; i < counted_; ++i) {
      while (i >= end_of(section, run.ledger.counts().found)) ++section;
      for (std::int64_t row = 0; row < order_->rows(i); row += rows_at_once()) {
        const std::int64_t n = std::min(rows_at_once(), order_->rows(i) - row);
        values.resize(static_cast<std::size_t>(n) * info_->values_per_row());
        files_[section]->read(offsets[i] + row, n, values.data());
        if (first_not_finite(values.data(), values.size(), NumberType::float32,
                             NumberType::float32) >= 0)
          throw RunError(
              fmt::format("{}: rows of {} are not finite (earlier versions kept such "
                          "rows); build it anew (overwrite: true)",
                          files_[section]->target(), run.source.source_name(i)));
        statistics_->take(i, row, n, values.data(), false);
      }
      statistics_->close(i);
    }
  }
  measured_ = statistics_->sums().statistics();
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
  std::atomic<std::int64_t> next{0};
  on_threads(run.workers, [&] {
    std::vector<float> values;
    for (std::int64_t piece = 0; (piece = next++) < pieces;) {
      const std::int64_t first = piece * rows_at_once(), n = std::min(rows_at_once(), rows - first);
      values.resize(static_cast<std::size_t>(n) * info_->values_per_row());
      file.read(first, n, values.data());
      MemoryRows unit(values.data(), n * frames, info_->columns);
      step->run(unit, unit);
      file.write(first, values.data(), n);
    }
  });
}

}  // namespace melflow
