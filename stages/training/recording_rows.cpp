#include "stages/training/recording_rows.h"

#include <algorithm>

#include "stages/features/mel/utterance_steps.h"
#include "stages/row_type.h"

namespace melflow {
namespace {

float* floats(std::vector<std::byte>& bytes) { return reinterpret_cast<float*>(bytes.data()); }

}  // namespace

bool RecordingRows::add(std::shared_ptr<const MelPart> part, std::int64_t rows) {
  if (part->is_whole() && !part->pending) {
    give(part->data->data(), 0, part->row_count, part->type);
    blocks_.push_back(std::move(part));
    return true;
  }
  if (are_left_ && !part->pending && part->type == type_) {
    if (part->row_count > 0) {
      const auto next = block_behind(part->first_row);
      blocks_.insert(next, std::move(part));
    }
    if (rows < 0) return false;
    give(nullptr, 0, rows, type_);
    return true;
  }
  const std::size_t columns =
      part->pending ? static_cast<std::size_t>(part->pending_columns) : info_->values_per_row();
  put(*part, columns, part->pending ? NumberType::float32 : type_);
  if (rows < 0) return false;
  if (part->pending)
    finish(*part->pending, rows, part->pending_columns);
  else
    give(bytes_.data(), begin_, rows - begin_, type_);
  return true;
}

const std::byte* RecordingRows::row(std::int64_t r) const {
  if (data_ != nullptr) return data_ + static_cast<std::size_t>(r - first_) * row_bytes();
  const MelPart& block = **std::prev(block_behind(r));
  return block.data->data() + static_cast<std::size_t>(r - block.first_row) * row_bytes();
}

// The first block that begins behind row `r`.
RecordingRows::Blocks::const_iterator RecordingRows::block_behind(std::int64_t r) const {
  return std::upper_bound(
      blocks_.begin(), blocks_.end(), r,
      [](std::int64_t row, const auto& block) { return row < block->first_row; });
}

void RecordingRows::put(const MelPart& part, std::size_t columns, NumberType type) {
  if (part.pending) begin_ = 0;  // all rows are needed
  const std::int64_t first = std::max(part.first_row, begin_);
  const std::int64_t count = part.first_row + part.row_count - first;
  if (count <= 0) return;
  const std::size_t at = static_cast<std::size_t>(first - begin_) * columns * size_of(type);
  const std::size_t left_out = static_cast<std::size_t>(first - part.first_row) * columns;
  const std::size_t values = static_cast<std::size_t>(count) * columns;
  bytes_.resize(std::max(bytes_.size(), at + values * size_of(type)));
  if (part.type == type)
    std::copy_n(part.data->data() + left_out * size_of(type), values * size_of(type),
                bytes_.data() + at);
  else
    from_float({part.values() + left_out, values}, type, bytes_.data() + at);
}

// Runs the steps that need all rows [rows, columns] of float32.
void RecordingRows::finish(const UtteranceSteps& steps, std::int64_t rows, int columns) {
  for (const auto& step : steps.steps()) {
    const int wanted = step->values_out(columns);
    MemoryRows in(floats(bytes_), rows, columns);
    const std::int64_t wanted_rows = step->rows_out(rows);
    if (wanted == columns && wanted_rows == rows) {
      step->run(in, in);
      continue;
    }
    std::vector<std::byte> next(static_cast<std::size_t>(wanted_rows) *
                                static_cast<std::size_t>(wanted) * sizeof(float));
    MemoryRows out(floats(next), wanted_rows, wanted);
    step->run(in, out);
    bytes_.swap(next);
    columns = wanted;
    rows = wanted_rows;
  }
  give(bytes_.data(), 0, rows, NumberType::float32);
}

void RecordingRows::give(const std::byte* rows, std::int64_t first, std::int64_t count,
                         NumberType type) {
  first_ = first;
  count_ = count;
  data_ = rows;
  if (type == type_) return;
  const std::size_t values = static_cast<std::size_t>(count) * info_->values_per_row();
  converted_.resize(values * size_of(type_));
  from_float({reinterpret_cast<const float*>(rows), values}, type_, converted_.data());
  data_ = converted_.data();
}

std::vector<std::byte> RecordingRows::take() {
  for (auto* own : {&bytes_, &converted_})
    if (data_ == own->data() && count_ > 0) return std::move(*own);
  return {data_, data_ + static_cast<std::size_t>(count_) * row_bytes()};
}

}  // namespace melflow
