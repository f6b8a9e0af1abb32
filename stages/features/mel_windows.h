// mel_windows.h - finds the windows of a block that have to be computed, for any backend.
//
// Every window is an utterance of its own. Windows of the two-stage segmentation can coincide: a
// row with the same samples as an earlier row is a copy of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "stages/features/mel/mel_signal.h"
#include "stages/items.h"

namespace melflow {

// Work space of one thread, kept from block to block.
class WindowScratch {
 public:
  // By row of the block: the earlier row with the same samples, or -1.
  [[nodiscard]] const std::vector<std::int64_t>& same_as() const { return same_as_; }

 private:
  template <class Sample, class Compute>
  friend void for_each_window(const Windows&, std::uint64_t, WindowScratch&, Compute&&);

  // Returns a window that extends past the end of the recording, filled up with silence.
  template <class Sample>
  const Sample* padded(const Windows& in, std::int64_t at) {
    padded_.assign(static_cast<std::size_t>(in.grid->length) * sizeof(Sample), std::byte{0});
    const std::int64_t have = in.samples.count - at;
    if (have > 0)
      std::memcpy(padded_.data(), in.samples.data + static_cast<std::size_t>(at) * sizeof(Sample),
                  static_cast<std::size_t>(have) * sizeof(Sample));
    return reinterpret_cast<const Sample*>(padded_.data());
  }

  std::vector<std::int64_t> row_at_;  // by position, in steps: the row computed there, or -1
  std::vector<std::int64_t> same_as_;
  std::vector<std::byte> padded_;
};

// Calls compute(view, row, is_padded) for each window of the block `in`, which has a grid, unless
// an earlier row has the same samples; `row` counts from the block's first one. The samples of a
// padded window are valid only during the call.
template <class Sample, class Compute>
void for_each_window(const Windows& in, std::uint64_t noise_key, WindowScratch& scratch,
                     Compute&& compute) {
  const WindowGrid& g = *in.grid;
  const auto* samples = reinterpret_cast<const Sample*>(in.samples.data);
  const bool overlap = g.per_long > 1;
  scratch.same_as_.assign(static_cast<std::size_t>(in.row_count), -1);
  // Windows start at multiples of `step` from the block's first one. All windows that start after
  // the end of a recording with a padded tail are the same silence.
  const std::int64_t step = std::gcd(g.long_hop, g.short_hop);
  const std::int64_t base = in.first_row / g.per_long * g.long_hop;
  const std::int64_t behind = std::max<std::int64_t>(0, in.end() - base + step - 1);
  if (overlap) scratch.row_at_.assign(static_cast<std::size_t>(behind / step) + 1, -1);
  for (std::int64_t r = 0; r < in.row_count; ++r) {
    const std::int64_t start = g.start(in.first_row + r);
    const std::int64_t at = std::min(start - in.begin, in.samples.count);
    if (overlap) {
      std::int64_t& first =
          scratch.row_at_[static_cast<std::size_t>(std::min(start - base, behind) / step)];
      if (first >= 0) {
        scratch.same_as_[static_cast<std::size_t>(r)] = first;
        continue;
      }
      first = r;
    }
    SignalView<Sample> view{samples + at, 0, g.length, g.length, noise_key, in.begin + at};
    const bool is_padded = at + g.length > in.samples.count;
    if (is_padded) view.data = scratch.padded<Sample>(in, at);
    compute(view, r, is_padded);
  }
}

}  // namespace melflow
