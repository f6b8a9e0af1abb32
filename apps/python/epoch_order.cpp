#include "apps/python/epoch_order.h"

#include <algorithm>
#include <utility>

namespace melflow {

EpochOrder::EpochOrder(Settings settings)
    : settings_(std::move(settings)),
      order_(settings_.samples, Permutation::of_epoch(settings_.seed, settings_.epoch)) {
  if (!settings_.lengths.empty()) {
    list_batches();
    count_ = ends_.size();
    return;
  }
  const std::uint64_t left = settings_.samples - std::min(settings_.samples, settings_.begin);
  const std::uint64_t all = settings_.limits.size * settings_.limits.ranks;
  count_ = left / all + (!settings_.drop_last && left % all > 0 ? 1 : 0);
}

void EpochOrder::list_batches() {
  Draws draws(Permutation::of_epoch(settings_.seed, settings_.epoch));
  std::vector<std::vector<std::int64_t>> batches;
  std::vector<std::int64_t> held, lengths;
  const auto take = [&held](const std::vector<std::size_t>& places) {
    std::vector<std::int64_t> out;
    for (const std::size_t place : places) out.push_back(held[place]);
    return out;
  };
  // Without buckets the order is the same whatever its batches are: these begin where others ended.
  std::uint64_t next = settings_.bucket > 0 ? 0 : settings_.begin;
  const std::uint64_t step = settings_.bucket > 0 ? settings_.bucket : settings_.samples;
  while (next < settings_.samples) {
    for (const std::uint64_t end = std::min(settings_.samples, next + step); next < end; ++next)
      held.push_back(at(next));
    lengths.clear();
    for (const std::int64_t s : held)
      lengths.push_back(settings_.lengths[static_cast<std::size_t>(s)]);
    const BatchCut cut = settings_.bucket > 0 ? cut_by_length(lengths, settings_.limits,
                                                              settings_.shuffles ? &draws : nullptr)
                                              : cut_in_order(lengths, settings_.limits);
    for (const auto& places : cut.full) batches.push_back(take(places));
    held = take(cut.rest);
  }
  if (!settings_.drop_last && !held.empty()) {
    fill_up(held);
    batches.push_back(held);
  }
  if (settings_.bucket > 0 && settings_.shuffles) draws.shuffle(batches);
  std::uint64_t passed = settings_.bucket > 0 ? 0 : settings_.begin;
  for (const std::vector<std::int64_t>& batch : batches) {
    if (passed < settings_.begin) {
      passed += batch.size();
      continue;
    }
    listed_.insert(listed_.end(), batch.begin(), batch.end());
    ends_.push_back(listed_.size());
  }
}

// To as many for each rank, by samples from the beginning of the epoch that are no longer than
// these.
void EpochOrder::fill_up(std::vector<std::int64_t>& batch) const {
  const auto length = [this](std::int64_t s) {
    return settings_.lengths[static_cast<std::size_t>(s)];
  };
  std::int64_t longest = 0;
  for (const std::int64_t s : batch) longest = std::max(longest, length(s));
  for (std::uint64_t place = 0; batch.size() % settings_.limits.ranks != 0; ++place)
    if (const std::int64_t s = at(place % settings_.samples); length(s) <= longest)
      batch.push_back(s);
}

EpochOrder::Batch EpochOrder::batch(std::uint64_t number, std::size_t rank) const {
  const std::size_t ranks = settings_.limits.ranks;
  Batch out;
  if (!ends_.empty()) {
    const std::size_t first = number > 0 ? ends_[number - 1] : 0, there = ends_[number] - first;
    out.end = std::min(settings_.samples, settings_.begin + ends_[number]);
    out.longest = 0;
    for (std::size_t i = first; i < first + there; ++i)
      out.longest = std::max(out.longest, settings_.lengths[static_cast<std::size_t>(listed_[i])]);
    const auto share = [&](std::size_t of) {
      return listed_.begin() + static_cast<std::ptrdiff_t>(first + there * of / ranks);
    };
    out.samples.assign(share(rank), share(rank + 1));
    return out;
  }
  const std::uint64_t all = settings_.limits.size * ranks, first = settings_.begin + number * all,
                      there = std::min(all, settings_.samples - first),
                      each = (there + ranks - 1) / ranks;
  out.end = first + there;
  for (std::uint64_t i = each * rank; i < each * (rank + 1); ++i)
    out.samples.push_back(at(i < there ? first + i : (i - there) % settings_.samples));
  return out;
}

Permutation EpochOrder::others() const {
  return {settings_.samples, Permutation::of_epoch(settings_.seed + 1, settings_.epoch)};
}

}  // namespace melflow
