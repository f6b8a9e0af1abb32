#include "stages/training/batch_cut.h"

#include <algorithm>
#include <numeric>

namespace melflow {
namespace {

using Places = std::vector<std::size_t>;

Places all_of(const std::vector<std::int64_t>& lengths) {
  Places out(lengths.size());
  std::iota(out.begin(), out.end(), 0);
  return out;
}

BatchCut cut(const Places& order, const std::vector<std::int64_t>& lengths,
             const BatchLimits& limits) {
  BatchCut out;
  std::int64_t longest = 0;
  const auto close = [&] {
    out.full.push_back(std::exchange(out.rest, {}));
    longest = 0;
  };
  for (const std::size_t place : order) {
    if (!limits.take(out.rest.size(), std::max(longest, lengths[place]))) close();
    out.rest.push_back(place);
    longest = std::max(longest, lengths[place]);
    if (limits.fill(out.rest.size())) close();
  }
  return out;
}

// Moves each sample of an order up by at most half of its batch, and a block from anywhere, which
// becomes the rest, to the end.
Places mixed(const BatchCut& sorted, Draws& draws) {
  constexpr std::size_t kUnit = 16;                        // between two neighbours
  std::vector<std::pair<std::size_t, std::size_t>> keyed;  // key, place
  const auto add = [&](const Places& batch) {
    for (const std::size_t place : batch)
      keyed.emplace_back(keyed.size() * kUnit + draws.below(kUnit / 2 * (batch.size() + 2)), place);
  };
  for (const Places& batch : sorted.full) add(batch);
  add(sorted.rest);
  std::sort(keyed.begin(), keyed.end());
  const std::size_t rest = sorted.rest.size();
  const auto block =
      keyed.begin() + static_cast<std::ptrdiff_t>(draws.below(keyed.size() - rest + 1));
  std::rotate(block, block + static_cast<std::ptrdiff_t>(rest), keyed.end());
  Places out;
  for (const auto& [key, place] : keyed) out.push_back(place);
  return out;
}

}  // namespace

// Uses the high bits of a product, which are uniform.
std::size_t Draws::below(std::size_t n) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::size_t>((static_cast<Wide>(random_()) * n) >> 64);
}

BatchCut cut_in_order(const std::vector<std::int64_t>& lengths, const BatchLimits& limits) {
  return cut(all_of(lengths), lengths, limits);
}

BatchCut cut_by_length(const std::vector<std::int64_t>& lengths, const BatchLimits& limits,
                       Draws* draws) {
  Places order = all_of(lengths);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lengths[a] < lengths[b]; });
  BatchCut out = cut(order, lengths, limits);
  return draws == nullptr ? out : cut(mixed(out, *draws), lengths, limits);
}

}  // namespace melflow
