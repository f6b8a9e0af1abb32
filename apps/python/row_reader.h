// Rows by their numbers, from many threads.
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
  /// Of batches: what an epoch had is used again by the next.
  [[nodiscard]] BufferPool& pool() const { return pool_; }

  /// What a thread keeps from one call to the next.
  struct Scratch {
    virtual ~Scratch() = default;
    /// What is read goes into something large: see stream_copy.h.
    bool streams = false;
  };
  [[nodiscard]] virtual std::unique_ptr<Scratch> scratch() const = 0;

  struct Range {
    std::uint64_t first = 0, count = 0;
  };
  /// Makes ranges ready that are read next, until drop(); gives the numbers of those that cannot be
  /// read any more, with which others take their place. `is_urgent`: somebody waits, so that
  /// nothing is to be made that may be of use later.
  [[nodiscard]] virtual std::vector<std::size_t> fetch(std::span<const Range>, Scratch&,
                                                       bool /*is_urgent*/) const {
    return {};
  }
  virtual void drop(Scratch&) const {}
  /// Begins to make ranges ready that somebody will fetch, and does not wait for them.
  virtual void prefetch(std::span<const Range>) const {}
  /// Why the last range was given by fetch(), for a message.
  [[nodiscard]] virtual std::string last_loss() const { return {}; }

  /// Copies rows to `to`. Throws RunError.
  virtual void read(const Range& rows, std::byte* to, Scratch& scratch) const = 0;
  /// Throws RunError where rows that were read may not be those that were opened.
  virtual void confirm() const {}
  /// Whether ranges are read faster in the order of their places.
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
