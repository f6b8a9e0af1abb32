// The rows of one recording at a time, assembled from the blocks in which they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/base/number_type.h"
#include "stages/items.h"

namespace melflow {

/// Not thread-safe.
class RecordingRows {
 public:
  /// Rows are returned as `type`.
  RecordingRows(std::shared_ptr<const FeatureInfo> info, NumberType type)
      : info_(std::move(info)), type_(type) {}

  /// Forgets the present recording. Of the next one, rows before `begin` need not be kept.
  void clear(std::int64_t begin = 0) {
    blocks_.clear();
    bytes_.clear();
    begin_ = begin;
  }
  /// Reserves memory for `rows` rows of the next recording.
  void reserve(std::int64_t rows) { bytes_.reserve(static_cast<std::size_t>(rows) * row_bytes()); }
  /// Leaves rows that already have the wanted form in their blocks, which are held until the next
  /// clear(): then row() must be used, not data(). Otherwise the blocks of a recording, if it has
  /// several, are copied together.
  void leave_in_blocks() { are_left_ = true; }
  /// Adds a block. `rows`: the recording's number of rows, before the steps that remain, where this
  /// block is the last one that was missing, else -1. Returns true when all rows are there.
  [[nodiscard]] bool add(std::shared_ptr<const MelPart> part, std::int64_t rows);
  /// Rows first() to first() + count() of the recording, [count(), frames, columns]; valid until
  /// the next clear() or add().
  [[nodiscard]] const std::byte* data() const { return data_; }
  /// Row `r` [frames, columns] of a complete recording; valid as data() is.
  [[nodiscard]] const std::byte* row(std::int64_t r) const;
  [[nodiscard]] std::int64_t first() const { return first_; }
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// Takes the rows from `begin` on that are there before the recording is complete, if its blocks
  /// came in order. Not where rows are unfinished until then (MelPart::pending).
  [[nodiscard]] std::vector<std::byte> take_begun() { return std::move(bytes_); }
  /// Takes the rows of data(), which is no longer valid.
  [[nodiscard]] std::vector<std::byte> take();
  [[nodiscard]] std::size_t row_bytes() const { return info_->values_per_row() * size_of(type_); }

 private:
  using Blocks = std::vector<std::shared_ptr<const MelPart>>;

  [[nodiscard]] Blocks::const_iterator block_behind(std::int64_t r) const;
  void put(const MelPart& part, std::size_t columns, NumberType type);
  void finish(const UtteranceSteps& steps, std::int64_t rows, int columns);
  void give(const std::byte* rows, std::int64_t first, std::int64_t count, NumberType type);

  std::shared_ptr<const FeatureInfo> info_;
  NumberType type_;
  bool are_left_ = false;
  Blocks blocks_;  // left as they are, by their first rows
  std::vector<std::byte> bytes_, converted_;
  const std::byte* data_ = nullptr;
  std::int64_t begin_ = 0, first_ = 0, count_ = 0;
};

}  // namespace melflow
