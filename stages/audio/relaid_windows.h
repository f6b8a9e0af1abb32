// Windows that a stage computes from those of a grid: each has samples of its own, and they lie one
// behind the other, also where the given ones overlap.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "stages/facts.h"
#include "stages/items.h"

namespace melflow {

/// The bound on rows that properties give, kRowsPerSample and kRowsExtra.
struct RowsPerSample {
  double rows = 0, extra = 0;
};

/// Returns the grid of windows of `length` samples that lie one behind the other; sets what the
/// properties say of windows.
inline WindowGrid windows_behind_each_other(std::int64_t length, Properties& out) {
  const WindowGrid grid{length, length, length, length, 1};
  out.set(property::kWindow, length);
  out.set(property::kWindowGrid, grid);
  out.set(property::kRowsPerSample, 1.0 / static_cast<double>(length));
  out.set(property::kRowsExtra, 1.0);
  return grid;
}

/// The most bytes of such windows for an input of so many bytes, with so many rows.
inline std::size_t bound_of_windows(const RowsPerSample& in, const WindowGrid& out,
                                    std::size_t input) {
  const double rows = static_cast<double>(input) / 2 * in.rows + in.extra;  // of int16
  return BufferPool::rounded(static_cast<std::size_t>(rows) * static_cast<std::size_t>(out.length) *
                             sizeof(float));
}

/// Calls make(window, start, out) for each window of `in`, with the samples of its recording, the
/// place of the first one, and where to write the samples of the new one.
template <class Make>
std::shared_ptr<const Windows> relaid_windows(const Windows& in, const WindowGrid& grid,
                                              SampleType type, BufferPool& pool, Make&& make) {
  const std::size_t bytes = static_cast<std::size_t>(grid.length) * size_of(type);
  auto buffer =
      std::make_shared<Buffer>(pool.lease(static_cast<std::size_t>(in.row_count) * bytes));
  for (std::int64_t row = 0; row < in.row_count; ++row) {
    const std::int64_t start = in.grid->start(in.first_row + row);
    const std::int64_t from = std::min(start - in.begin, in.samples.count);
    Samples window = in.samples;
    window.data += static_cast<std::size_t>(from) * size_of(window.type);
    window.count = std::min(in.samples.count - from, in.grid->length);
    make(window, start, buffer->data() + static_cast<std::size_t>(row) * bytes);
  }
  auto out = std::make_shared<Windows>(in);
  out->samples = {buffer, buffer->data(), in.row_count * grid.length, type};
  out->begin = out->fresh = in.first_row * grid.length;
  out->grid = grid;
  return out;
}

}  // namespace melflow
