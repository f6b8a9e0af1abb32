#include "apps/python/epoch_order.h"

#include <algorithm>
#include <compare>
#include <iterator>
#include <numeric>
#include <utility>

namespace melflow {

EpochOrder::EpochOrder(Settings settings)
    : settings_(std::move(settings)),
      order_(settings_.samples, Permutation::of_epoch(settings_.seed, settings_.epoch)),
      others_(settings_.together.samples.empty() ? settings_.samples
                                                 : settings_.together.samples.size(),
              Permutation::of_epoch(settings_.seed + 1, settings_.epoch)) {
  list_together();
  if (settings_.shuffles && in_order_.empty() && !settings_.places.empty()) list_recordings();
  if (!settings_.lengths.empty()) {
    list_batches();
    count_ = ends_.size();
    return;
  }
  const std::uint64_t left = settings_.samples - std::min(settings_.samples, settings_.begin);
  const std::uint64_t all = settings_.limits.size * settings_.limits.ranks;
  count_ = left / all + (!settings_.drop_last && left % all > 0 ? 1 : 0);
}

void EpochOrder::list_together() {
  const std::vector<std::int64_t>&samples = settings_.together.samples,
        &rows = settings_.together.rows;
  if (samples.empty()) return;
  std::partial_sum(samples.begin(), samples.end(), std::back_inserter(recording_ends_));
  if (!settings_.shuffles) return;
  struct Place {
    std::int64_t row, draw, sample;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> places;
  places.reserve(settings_.samples);
  const Permutation recordings(samples.size(),
                               Permutation::of_epoch(settings_.seed + 2, settings_.epoch));
  std::int64_t row = 0;  // at which this recording's turn comes
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto recording = static_cast<std::size_t>(recordings(i));
    const std::int64_t end = recording_ends_[recording];
    // The delay grows from 0, so that the first batches need few recordings.
    const double step = static_cast<double>(std::min(settings_.together.window, row)) /
                        static_cast<double>(settings_.samples);
    for (std::int64_t s = end - samples[recording]; s < end; ++s) {
      const auto draw = static_cast<std::int64_t>(order_(static_cast<std::uint64_t>(s)));
      const double late = static_cast<double>(draw) * step;
      places.push_back({row + static_cast<std::int64_t>(late), draw, s});
    }
    row += rows[recording];
  }
  std::sort(places.begin(), places.end());
  for (const Place& p : places) in_order_.push_back(p.sample);
}

// In the order in which the whole list is shuffled for a Loader.
void EpochOrder::list_recordings() {
  std::vector<std::int64_t> samples(settings_.listed, -1);
  for (std::size_t s = 0; s < settings_.places.size(); ++s)
    samples[static_cast<std::size_t>(settings_.places[s])] = static_cast<std::int64_t>(s);
  const Permutation of(settings_.listed, Permutation::of_epoch(settings_.seed, settings_.epoch));
  for (std::uint64_t k = 0; k < settings_.listed; ++k)
    if (const std::int64_t s = samples[of(k)]; s >= 0) in_order_.push_back(s);
}

void EpochOrder::list_batches() {
  Draws draws(Permutation::of_epoch(settings_.seed, settings_.epoch));
  const bool has_buckets = settings_.bucket > 0;
  Bucket<std::int64_t> bucket(has_buckets);
  // Without buckets the order does not depend on batches, so these start where earlier ones ended.
  std::uint64_t passed = has_buckets ? 0 : settings_.begin;
  const auto cut = [&](bool is_last) {
    const auto is_batch = [&](std::vector<std::int64_t>& rest) {
      if (!is_last || settings_.drop_last) return false;
      fill_up(rest);
      return true;
    };
    for (const std::vector<std::int64_t>& batch : bucket.cut(
             settings_.limits, has_buckets && settings_.shuffles ? &draws : nullptr, is_batch)) {
      if (passed < settings_.begin) {
        passed += batch.size();
        continue;
      }
      listed_.insert(listed_.end(), batch.begin(), batch.end());
      ends_.push_back(listed_.size());
    }
  };
  for (std::uint64_t next = passed; next < settings_.samples; ++next) {
    bucket.add(at(next), settings_.lengths[static_cast<std::size_t>(at(next))]);
    if (bucket.arrived() == settings_.bucket) cut(false);
  }
  if (!bucket.held().empty()) cut(true);
}

// Fills the batch up to a multiple of the ranks with samples from the beginning of the epoch that
// are no longer than the batch's longest.
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

std::int64_t EpochOrder::other(std::int64_t sample, std::uint64_t attempt) const {
  const auto drawn = [&](std::uint64_t of, std::uint64_t from) {
    return static_cast<std::int64_t>(others_((of + attempt) % from));
  };
  if (recording_ends_.empty()) return drawn(static_cast<std::uint64_t>(sample), settings_.samples);
  const std::vector<std::int64_t>& samples = settings_.together.samples;
  const auto begin_of = [&](std::size_t recording) {
    return recording_ends_[recording] - samples[recording];
  };
  const auto mine = static_cast<std::size_t>(
      std::upper_bound(recording_ends_.begin(), recording_ends_.end(), sample) -
      recording_ends_.begin());
  const auto its = static_cast<std::size_t>(drawn(mine, samples.size()));
  return begin_of(its) + (sample - begin_of(mine)) % samples[its];
}

}  // namespace melflow
