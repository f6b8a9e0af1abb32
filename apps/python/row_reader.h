// Reads rows by number; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/python/stream_copy.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/number_type.h"

namespace melflow {

class RowReader {
 public:
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;
  virtual ~RowReader() = default;

  [[nodiscard]] NumberType type() const { return type_; }
  [[nodiscard]] const std::vector<std::size_t>& row_shape() const { return row_shape_; }
  [[nodiscard]] std::size_t values_per_row() const { return values_; }
  [[nodiscard]] std::size_t row_bytes() const { return values_ * size_of(type_); }
  /// Buffers for batches, reused from one epoch to the next.
  [[nodiscard]] BufferPool& pool() const { return pool_; }

  /// State that a thread keeps from call to call.
  struct Scratch {
    virtual ~Scratch() = default;
    /// Whether the destination is too large for the caches: see stream_copy.h.
    bool streams = false;
  };
  [[nodiscard]] virtual std::unique_ptr<Scratch> scratch() const = 0;

  struct Range {
    std::uint64_t first = 0, count = 0;
  };
  /// Makes ranges ready to be read until drop(). Returns the indices of those that can no longer be
  /// read, which the caller replaces. `is_urgent`: a caller waits, so nothing is to be computed
  /// only for later use.
  [[nodiscard]] virtual std::vector<std::size_t> fetch(std::span<const Range>, Scratch&,
                                                       bool /*is_urgent*/) const {
    return {};
  }
  virtual void drop(Scratch&) const {}
  /// Starts making ranges ready for a later fetch(), without waiting for them.
  virtual void prefetch(std::span<const Range>) const {}
  /// Returns why fetch() last reported a range, for a message.
  [[nodiscard]] virtual std::string last_loss() const { return {}; }

  /// Copies rows to `to`. Throws RunError.
  virtual void read(const Range& rows, std::byte* to, Scratch& scratch) const = 0;
  /// Throws RunError where the source of the rows may have changed since it was opened.
  virtual void confirm() const {}
  /// Whether reading ranges in order of position is faster.
  [[nodiscard]] virtual bool is_ordered() const = 0;

 protected:
  static void copy(std::byte* to, const std::byte* from, std::size_t bytes,
                   const Scratch& scratch) {
    if (scratch.streams)
      stream_copy(to, from, bytes);
    else
      std::memcpy(to, from, bytes);
  }
  RowReader(NumberType type, std::vector<std::size_t> row_shape)
      : type_(type), row_shape_(std::move(row_shape)) {
    for (const std::size_t n : row_shape_) values_ *= n;
  }

 private:
  NumberType type_;
  std::vector<std::size_t> row_shape_;
  std::size_t values_ = 1;
  mutable BufferPool pool_{std::numeric_limits<std::size_t>::max()};
};

}  // namespace melflow
