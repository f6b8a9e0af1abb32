// The rows of one recording at a time, put together from the blocks they come in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/number_type.h"
#include "stages/items.h"

namespace melflow {

/// Not thread-safe.
class RecordingRows {
 public:
  /// Rows are given as `type`.
  RecordingRows(std::shared_ptr<const FeatureInfo> info, NumberType type)
      : info_(std::move(info)), type_(type) {}

  /// Forgets the recording at hand. Of the next one rows before `begin` need not be kept.
  void clear(std::int64_t begin = 0) {
    bytes_.clear();
    begin_ = begin;
  }
  /// Makes room for so many rows of the recording that follows.
  void reserve(std::int64_t rows) { bytes_.reserve(static_cast<std::size_t>(rows) * row_bytes()); }
  /// Adds a block; `rows`: of the recording, where this block is the last that was missing, else -1.
  /// True: all rows are there.
  [[nodiscard]] bool add(const MelPart& part, std::int64_t rows);
  /// Rows first() to first() + count() of the recording, [count(), frames, columns]; valid until the next clear() or add(), and as long as a block that is
  /// the whole recording.
  [[nodiscard]] const std::byte* data() const { return data_; }
  [[nodiscard]] std::int64_t first() const { return first_; }
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// From now on data() is valid until the next clear() or add(), whatever happens to the block.
  void hold();
  /// Of a recording whose blocks came in order, the rows from `begin` on that are there before it is
  /// complete. Not where rows are unfinished until then (MelPart::pending).
  [[nodiscard]] std::vector<std::byte> take_begun() { return std::move(bytes_); }
  /// What data() shows, which is not valid any more.
  [[nodiscard]] std::vector<std::byte> take();
  [[nodiscard]] std::size_t row_bytes() const { return info_->values_per_row() * size_of(type_); }

 private:
  void put(const MelPart& part, std::size_t columns, NumberType type);
  void finish(const UtteranceSteps& steps, std::int64_t rows, int columns);
  void give(const std::byte* rows, std::int64_t first, std::int64_t count, NumberType type);

  std::shared_ptr<const FeatureInfo> info_;
  NumberType type_;
  std::vector<std::byte> bytes_, converted_;
  const std::byte* data_ = nullptr;
  std::int64_t begin_ = 0, first_ = 0, count_ = 0;
};

}  // namespace melflow
