#include "stages/training/batch_cut.h"

#include <algorithm>
#include <numeric>
#include <set>

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
  std::int64_t longest = 0, shortest = 0;
  const auto add = [&](std::size_t place) {
    shortest = out.rest.empty() ? lengths[place] : std::min(shortest, lengths[place]);
    longest = out.rest.empty() ? lengths[place] : std::max(longest, lengths[place]);
    out.rest.push_back(place);
  };
  const auto close = [&] {
    Places batch = std::exchange(out.rest, {});
    // With limits of rows, ranks whose shares differ by a sample would differ in work.
    const std::size_t odd = limits.max_rows > 0 ? batch.size() % limits.ranks : 0;
    const auto end = batch.end() - static_cast<std::ptrdiff_t>(odd);
    for (auto place = end; place != batch.end(); ++place) add(*place);
    batch.erase(end, batch.end());
    out.full.push_back(std::move(batch));
  };
  for (const std::size_t place : order) {
    const std::int64_t length = lengths[place];
    if (!limits.take(out.rest.size(), std::max(longest, length), std::min(shortest, length)))
      close();
    add(place);
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

std::vector<std::vector<std::size_t>> pack(const std::vector<std::int64_t>& lengths,
                                           const BatchLimits& limits) {
  Places order = all_of(lengths);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  const auto most = static_cast<std::int64_t>(limits.max_rows);
  std::vector<Places> out;
  std::vector<std::int64_t> room;                       // of each
  std::set<std::pair<std::int64_t, std::size_t>> open;  // room, batch
  for (const std::size_t place : order) {
    const auto best = open.lower_bound({lengths[place], 0});
    std::size_t batch = out.size();
    if (best != open.end()) {
      batch = best->second;
      open.erase(best);
    } else {
      out.emplace_back();
      room.push_back(most);
    }
    out[batch].push_back(place);
    room[batch] -= lengths[place];
    if (out[batch].size() < limits.size && room[batch] > 0) open.emplace(room[batch], batch);
  }
  std::vector<std::size_t> by_room(out.size());
  std::iota(by_room.begin(), by_room.end(), 0);
  std::stable_sort(by_room.begin(), by_room.end(),
                   [&](std::size_t a, std::size_t b) { return room[a] < room[b]; });
  std::vector<Places> sorted;
  for (const std::size_t batch : by_room) sorted.push_back(std::move(out[batch]));
  return sorted;
}

}  // namespace melflow
