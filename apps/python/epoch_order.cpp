#include "apps/python/epoch_order.h"

#include <algorithm>
#include <compare>
#include <iterator>
#include <numeric>
#include <utility>

namespace melflow {

EpochOrder::EpochOrder(Settings settings)
    : settings_(std::move(settings)),
      samples_(settings_.order.empty() ? settings_.samples : settings_.order.size()),
      ranks_(settings_.ranks == 0 ? settings_.limits.ranks : settings_.ranks),
      order_(settings_.samples, Permutation::of_epoch(settings_.seed, settings_.epoch)),
      others_(settings_.together.samples.empty() ? settings_.samples
                                                 : settings_.together.samples.size(),
              Permutation::of_epoch(settings_.seed + 1, settings_.epoch)),
      in_order_(std::move(settings_.order)) {
  if (in_order_.empty()) list_together();
  if (settings_.shuffles && in_order_.empty() && !settings_.places.empty()) list_recordings();
  if (!settings_.lengths.empty()) {
    if (settings_.packs)
      list_packed();
    else
      list_batches();
    count_ = ends_.size() / ranks_;
    return;
  }
  const std::uint64_t left = samples_ - std::min(samples_, settings_.begin);
  const std::uint64_t all = settings_.limits.size * ranks_;
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
  const bool from_start = has_buckets || settings_.keeps_groups;
  std::uint64_t passed = from_start ? 0 : settings_.begin;
  const auto cut = [&](bool is_last) {
    Samples filled_up;  // comes last, when all samples have been delivered
    const auto is_batch = [&](Samples& rest) {
      if (!is_last || settings_.drop_last) return false;
      if (rest.size() % settings_.limits.ranks == 0) return true;
      filled_up = std::exchange(rest, {});
      fill_up(filled_up, settings_.limits.ranks);
      return false;
    };
    for (Samples& group : bucket.cut(
             settings_.limits, has_buckets && settings_.shuffles ? &draws : nullptr, is_batch))
      list_shared(std::move(group), false, passed);
    if (!filled_up.empty()) list_shared(std::move(filled_up), true, passed);
  };
  for (std::uint64_t next = passed; next < samples_; ++next) {
    bucket.add(at(next), length(at(next)));
    if (bucket.arrived() == settings_.bucket) cut(false);
  }
  if (!bucket.held().empty()) cut(true);
}

// Packs the samples of each bucket, and groups batches that have about as many rows.
void EpochOrder::list_packed() {
  Draws draws(Permutation::of_epoch(settings_.seed, settings_.epoch));
  const std::size_t ranks = settings_.limits.ranks,
                    bucket = std::max<std::size_t>(settings_.bucket, 1);
  std::uint64_t passed = 0;
  Samples held;
  std::size_t arrived = 0;
  for (std::uint64_t next = 0; next < samples_; ++next) {
    held.push_back(at(next));
    const bool is_last = next + 1 == samples_;
    if (++arrived < bucket && !is_last) continue;
    arrived = 0;
    std::vector<std::int64_t> lengths;
    for (const std::int64_t s : held) lengths.push_back(length(s));
    std::vector<std::vector<Samples>> groups;
    for (const std::vector<std::size_t>& places : pack(lengths, settings_.limits)) {
      if (groups.empty() || groups.back().size() == ranks) groups.emplace_back();
      Samples& batch = groups.back().emplace_back();
      for (const std::size_t place : places) batch.push_back(held[place]);
    }
    // The batches with the fewest rows, which come last, are packed again with the next bucket.
    held.clear();
    while (!is_last && !groups.empty() && (held.empty() || groups.back().size() < ranks)) {
      for (const Samples& batch : groups.back())
        held.insert(held.end(), batch.begin(), batch.end());
      groups.pop_back();
    }
    std::vector<Samples> few;  // a group of fewer batches than it takes, which comes last
    if (is_last && groups.back().size() < ranks) {
      few = std::move(groups.back());
      groups.pop_back();
    }
    if (settings_.shuffles) draws.shuffle(groups);
    for (std::vector<Samples>& group : groups) list_group(std::move(group), passed);
    if (few.empty() || settings_.drop_last) continue;
    even_out(few, ranks);
    list_group(std::move(few), passed);
  }
}

// A group as one batch for each of its ranks: each has as many samples, and of those sorted by
// length each gets every so many-th where the rows of a batch are bounded. What a group is filled
// up with is in its last batches, so that all samples have been delivered where these begin.
void EpochOrder::list_shared(Samples group, bool is_filled_up, std::uint64_t& passed) {
  const std::size_t ranks = settings_.limits.ranks;
  std::vector<Samples> batches(ranks);
  if (ranks > 1 && settings_.limits.max_rows > 0 && !is_filled_up) {
    std::stable_sort(group.begin(), group.end(),
                     [&](std::int64_t a, std::int64_t b) { return length(a) > length(b); });
    for (std::size_t i = 0; i < group.size(); ++i) batches[i % ranks].push_back(group[i]);
  } else {
    const auto share = [&](std::size_t r) {
      return group.begin() + static_cast<std::ptrdiff_t>(group.size() * r / ranks);
    };
    for (std::size_t r = 0; r < ranks; ++r) batches[r].assign(share(r), share(r + 1));
  }
  list_group(std::move(batches), passed);
}

// Lists what is left of a group after `begin`, which may be in a batch that was split.
void EpochOrder::list_group(std::vector<Samples> batches, std::uint64_t& passed) {
  const bool is_one_step = ranks_ == settings_.limits.ranks;
  if (is_one_step && settings_.begin >= samples_) return;
  std::size_t done = 0;
  while (done < batches.size() && passed + batches[done].size() <= settings_.begin)
    passed += batches[done++].size();
  batches.erase(batches.begin(), batches.begin() + static_cast<std::ptrdiff_t>(done));
  if (batches.empty()) return;
  if (passed < settings_.begin) {
    Samples& first = batches.front();
    first.erase(first.begin(),
                first.begin() + static_cast<std::ptrdiff_t>(settings_.begin - passed));
    passed = settings_.begin;
  }
  std::uint64_t end = passed;
  for (const Samples& batch : batches) end += batch.size();
  if (batches.size() % ranks_ != 0) even_out(batches, ranks_);
  for (const Samples& batch : batches) {
    listed_.insert(listed_.end(), batch.begin(), batch.end());
    passed = std::min(end, passed + batch.size());
    // In a group of several steps also what it is filled up with counts, to tell these apart.
    ends_.push_back({listed_.size(), is_one_step ? std::min(passed, samples_) : passed});
  }
}

// Makes the number of batches a multiple by halving the largest, and where all have one sample, by
// repeating samples from the beginning of the epoch.
void EpochOrder::even_out(std::vector<Samples>& batches, std::size_t multiple) const {
  std::int64_t longest = 0;  // of the last batch, which is there wherever the rest begins
  for (const std::int64_t s : batches.back()) longest = std::max(longest, length(s));
  std::uint64_t place = 0;
  while (batches.size() % multiple != 0) {
    const auto largest =
        std::max_element(batches.begin(), batches.end(),
                         [](const Samples& a, const Samples& b) { return a.size() < b.size(); });
    if (largest->size() > 1) {
      const auto half = largest->begin() + static_cast<std::ptrdiff_t>(largest->size() / 2);
      Samples second(half, largest->end());
      largest->erase(half, largest->end());
      batches.insert(largest + 1, std::move(second));
      continue;
    }
    std::int64_t sample = at(place++ % samples_);
    while (length(sample) > longest) sample = at(place++ % samples_);
    batches.push_back({sample});
  }
}

// Fills a batch up to a multiple with samples from the beginning of the epoch that are no longer
// than its longest, nor shorter than its padding allows.
void EpochOrder::fill_up(Samples& batch, std::size_t multiple) const {
  std::int64_t longest = 0;
  for (const std::int64_t s : batch) longest = std::max(longest, length(s));
  for (std::uint64_t place = 0; batch.size() % multiple != 0; ++place)
    if (const std::int64_t s = at(place % samples_);
        length(s) <= longest && settings_.limits.pads(longest, length(s)))
      batch.push_back(s);
}

std::vector<std::int64_t> EpochOrder::listed_ends() const {
  std::vector<std::int64_t> out;
  for (const End& end : ends_) out.push_back(static_cast<std::int64_t>(end.listed));
  return out;
}

EpochOrder::Batch EpochOrder::batch(std::uint64_t number, std::size_t rank) const {
  Batch out;
  if (!settings_.lengths.empty()) {
    const std::size_t step = static_cast<std::size_t>(number) * ranks_;
    const auto begin_of = [&](std::size_t i) { return i > 0 ? ends_[i - 1].listed : 0; };
    out.end = ends_[step + ranks_ - 1].delivered;
    out.longest = 0;
    for (std::size_t i = begin_of(step); i < ends_[step + ranks_ - 1].listed; ++i)
      out.longest = std::max(out.longest, length(listed_[i]));
    out.samples.assign(listed_.begin() + static_cast<std::ptrdiff_t>(begin_of(step + rank)),
                       listed_.begin() + static_cast<std::ptrdiff_t>(ends_[step + rank].listed));
    return out;
  }
  const std::uint64_t all = settings_.limits.size * ranks_, first = settings_.begin + number * all,
                      there = std::min(all, samples_ - first), each = (there + ranks_ - 1) / ranks_;
  out.end = first + there;
  for (std::uint64_t i = each * rank; i < each * (rank + 1); ++i)
    out.samples.push_back(at(i < there ? first + i : (i - there) % samples_));
  return out;
}

const EpochOrder::Settings::Source* EpochOrder::find_source(std::int64_t sample) const {
  for (const Settings::Source& of : settings_.sources)
    if (std::binary_search(of.samples.begin(), of.samples.end(), sample)) return &of;
  return nullptr;
}

std::string EpochOrder::source_of(std::int64_t sample) const {
  const Settings::Source* of = find_source(sample);
  return of == nullptr ? std::string() : of->name;
}

std::int64_t EpochOrder::other(std::int64_t sample, std::uint64_t attempt) const {
  const auto drawn = [&](std::uint64_t of, std::uint64_t from) {
    return static_cast<std::int64_t>(others_((of + attempt) % from));
  };
  if (const Settings::Source* of = find_source(sample)) {
    const std::vector<std::int64_t>& from = of->samples;
    const auto mine = std::lower_bound(from.begin(), from.end(), sample) - from.begin();
    const Permutation others(from.size(),
                             Permutation::of_epoch(settings_.seed + 1, settings_.epoch));
    return from[others((static_cast<std::uint64_t>(mine) + attempt) % from.size())];
  }
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
