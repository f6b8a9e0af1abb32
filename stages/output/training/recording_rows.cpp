#include "stages/output/training/recording_rows.h"

#include <algorithm>

#include "stages/features/mel/utterance_steps.h"
#include "stages/row_type.h"

namespace melflow {
namespace {

float* floats(std::vector<std::byte>& bytes) { return reinterpret_cast<float*>(bytes.data()); }

}  // namespace

bool RecordingRows::add(const MelPart& part, std::int64_t rows) {
  if (part.is_whole() && !part.pending) {
    give(part.data->data(), part.row_count, part.type);
    return true;
  }
  put(part, part.pending ? static_cast<std::size_t>(part.pending_columns) * sizeof(float)
                         : info_->values_per_row() * size_of(part.type));
  if (rows < 0) return false;
  if (part.pending) finish(*part.pending, rows, part.pending_columns);
  give(bytes_.data(), rows, part.type);
  return true;
}

void RecordingRows::put(const MelPart& part, std::size_t row_bytes) {
  const std::size_t at = static_cast<std::size_t>(part.first_row) * row_bytes;
  const std::size_t bytes = static_cast<std::size_t>(part.row_count) * row_bytes;
  bytes_.resize(std::max(bytes_.size(), at + bytes));
  if (bytes > 0) std::copy_n(part.data->data(), bytes, bytes_.data() + at);
}

// Takes the steps that need all rows [rows, columns] of float32.
void RecordingRows::finish(const UtteranceSteps& steps, std::int64_t rows, int columns) {
  for (const auto& step : steps.steps()) {
    const int wanted = step->values_out(columns);
    MemoryRows in(floats(bytes_), rows, columns);
    if (wanted == columns) {
      step->run(in, in);
      continue;
    }
    std::vector<std::byte> next(static_cast<std::size_t>(rows) * static_cast<std::size_t>(wanted) *
                                sizeof(float));
    MemoryRows out(floats(next), rows, wanted);
    step->run(in, out);
    bytes_.swap(next);
    columns = wanted;
  }
}

void RecordingRows::give(const std::byte* rows, std::int64_t count, NumberType type) {
  count_ = count;
  data_ = rows;
  if (type == type_) return;
  const std::size_t values = static_cast<std::size_t>(count) * info_->values_per_row();
  converted_.resize(values * size_of(type_));
  from_float({reinterpret_cast<const float*>(rows), values}, type_, converted_.data());
  data_ = converted_.data();
}

}  // namespace melflow
