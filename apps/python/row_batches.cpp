#include "apps/python/row_batches.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "apps/python/process.h"
#include "pipeline/problem.h"
#include "pipeline/threads.h"

namespace melflow {
namespace {

constexpr std::uint64_t kMostReplaced = 100;  // for one sample

// Batches of all ranks together take `size` samples from `left`; the last one is shared evenly, and
// left out where a rank would have none of it: all have as many batches.
std::uint64_t batches_of(std::uint64_t left, std::uint64_t size, std::uint64_t ranks,
                         bool drop_last) {
  return left / size + (!drop_last && left % size >= ranks ? 1 : 0);
}

// And the number of samples up to the end of each range.
std::uint64_t samples_in(const RowBatches::Settings& settings, std::vector<std::int64_t>& ends) {
  if (settings.is_ragged) return settings.starts.size();
  std::partial_sum(settings.counts.begin(), settings.counts.end(), std::back_inserter(ends));
  return ends.empty() ? 0 : static_cast<std::uint64_t>(ends.back());
}

}  // namespace

RowBatches::RowBatches(std::shared_ptr<const RowReader> reader, Settings settings)
    : reader_(std::move(reader)),
      settings_(std::move(settings)),
      samples_(samples_in(settings_, ends_)),
      order_(samples_, Permutation::of_epoch(settings_.seed, settings_.epoch)) {
  check_process();
  if (!settings_.mean.empty()) scale_ = fixed_step(settings_.mean, settings_.std);
  const std::uint64_t n = samples_;
  count_ = batches_of(n - std::min(n, settings_.begin), settings_.size * settings_.ranks,
                      settings_.ranks, settings_.drop_last);
  for (std::size_t i = 0; i < std::max<std::size_t>(1, settings_.threads); ++i)
    if (!add_thread(threads_, [this] { work(); }) && threads_.empty())
      throw RunError(no_thread_text("the loader of rows"));
}

RowBatches::~RowBatches() { stop(); }

std::uint64_t RowBatches::count() const {
  return batches_of(samples_, settings_.size * settings_.ranks, settings_.ranks,
                    settings_.drop_last);
}

// `bucket` is what the last call left there.
std::int64_t RowBatches::sample_at(std::uint64_t place, Bucket& bucket) const {
  const auto unsorted = [this](std::uint64_t i) {
    return static_cast<std::int64_t>(settings_.shuffles ? order_(i) : i);
  };
  if (settings_.bucket == 0) return unsorted(place);
  const std::uint64_t number = place / settings_.bucket, first = number * settings_.bucket;
  if (bucket.samples.empty() || bucket.first != first) {
    bucket.first = first;
    bucket.samples.clear();
    for (std::uint64_t i = first; i < std::min(samples_, first + settings_.bucket); ++i)
      bucket.samples.push_back(unsorted(i));
    const std::vector<std::int64_t>& lengths =
        settings_.lengths.empty() ? settings_.counts : settings_.lengths;
    std::stable_sort(
        bucket.samples.begin(), bucket.samples.end(), [&](std::int64_t a, std::int64_t b) {
          return lengths[static_cast<std::size_t>(a)] < lengths[static_cast<std::size_t>(b)];
        });
    // Rising and falling in turn: a batch may have the end of one and the beginning of the next.
    if (number % 2 == 1) std::reverse(bucket.samples.begin(), bucket.samples.end());
  }
  return bucket.samples[static_cast<std::size_t>(place - first)];
}

std::vector<std::int64_t> RowBatches::samples_of(std::uint64_t batch, Bucket& bucket) const {
  const std::uint64_t all = settings_.size * settings_.ranks;
  const std::uint64_t first = settings_.begin + batch * all;
  const std::uint64_t there = std::min<std::uint64_t>(all, samples_ - first);
  const std::uint64_t begin = first + there * settings_.rank / settings_.ranks;
  const std::uint64_t end = first + there * (settings_.rank + 1) / settings_.ranks;
  std::vector<std::int64_t> out;
  for (std::uint64_t i = begin; i < end; ++i) out.push_back(sample_at(i, bucket));
  return out;
}

std::uint64_t RowBatches::first_row(std::int64_t sample) const {
  if (settings_.is_ragged)
    return static_cast<std::uint64_t>(settings_.starts[static_cast<std::size_t>(sample)]);
  const auto range = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), sample) -
                                              ends_.begin());
  const std::int64_t before = range > 0 ? ends_[range - 1] : 0;
  return static_cast<std::uint64_t>(settings_.starts[range] + sample - before);
}

// Samples that cannot be read any more give their places to others, which are the same wherever the
// same recordings are lost.
void RowBatches::replace_lost(std::vector<std::int64_t>& samples, RowReader::Scratch& scratch,
                              bool is_urgent) const {
  const auto range = [this](std::int64_t s) {
    return RowReader::Range{first_row(s), static_cast<std::uint64_t>(rows_of(s))};
  };
  std::vector<RowReader::Range> ranges;
  for (const std::int64_t s : samples) ranges.push_back(range(s));
  std::vector<std::size_t> places = reader_->fetch(ranges, scratch, is_urgent);
  if (places.empty()) return;
  const Permutation others(samples_, Permutation::of_epoch(settings_.seed + 1, settings_.epoch));
  const std::vector<std::int64_t> wanted = samples;
  for (std::uint64_t attempt = 0; !places.empty(); ++attempt) {
    if (attempt == kMostReplaced)
      throw RunError(
          fmt::format("{} samples one after the other cannot be read any more; the last one: {}",
                      kMostReplaced + 1, reader_->last_loss()));
    ranges.clear();
    for (const std::size_t p : places) {
      const auto lost = static_cast<std::uint64_t>(wanted[p]);
      samples[p] = static_cast<std::int64_t>(others((lost + attempt) % samples_));
      ranges.push_back(range(samples[p]));
    }
    std::vector<std::size_t> still;
    for (const std::size_t i : reader_->fetch(ranges, scratch, is_urgent))
      still.push_back(places[i]);
    places = std::move(still);
  }
}

RowBatches::Batch RowBatches::make(std::vector<std::int64_t> samples, RowReader::Scratch& scratch,
                                   bool is_urgent) {
  replace_lost(samples, scratch, is_urgent);
  const bool is_ragged = settings_.is_ragged;
  const NumberType stored_type = reader_->type();
  const bool as_float =
      scale_ != nullptr || (settings_.as_float32 && stored_type != NumberType::float32);
  Batch out;
  out.type = as_float ? NumberType::float32 : stored_type;
  const std::vector<std::size_t>& shape = reader_->row_shape();
  std::int64_t longest = 1;
  for (const std::int64_t s : samples) longest = std::max(longest, rows_of(s));
  const std::size_t values = reader_->values_per_row();
  const std::size_t row_bytes = values * size_of(out.type);
  const std::size_t sample_bytes = static_cast<std::size_t>(longest) * row_bytes;
  out.data = reader_->pool().lease(std::max<std::size_t>(1, samples.size() * sample_bytes));
  // Values that are not final when they are read are soon read again.
  scratch.streams = !as_float && samples.size() * sample_bytes >= kBeyondCaches;
  // By their places, so that a chunk is unpacked once.
  std::vector<std::size_t> by_place(samples.size());
  std::iota(by_place.begin(), by_place.end(), 0);
  if (reader_->is_ordered())
    std::sort(by_place.begin(), by_place.end(), [&](std::size_t a, std::size_t b) {
      return first_row(samples[a]) < first_row(samples[b]);
    });
  out.lengths.resize(is_ragged ? samples.size() : 0);
  std::vector<std::byte> stored;
  for (const std::size_t place : by_place) {
    const std::int64_t rows = rows_of(samples[place]);
    std::byte* to = out.data.data() + place * sample_bytes;
    const auto n = static_cast<std::uint64_t>(rows);
    const std::uint64_t first = first_row(samples[place]);
    if (as_float && stored_type != NumberType::float32) {
      stored.resize(n * reader_->row_bytes());
      reader_->read({first, n}, stored.data(), scratch);
      to_float(stored.data(), n * values, stored_type, reinterpret_cast<float*>(to));
    } else {
      reader_->read({first, n}, to, scratch);
    }
    if (scale_ != nullptr) {
      const std::size_t columns = shape.empty() ? 1 : shape.back();
      MemoryRows scaled(reinterpret_cast<float*>(to),
                        rows * static_cast<std::int64_t>(values / columns),
                        static_cast<int>(columns));
      scale_->run(scaled, scaled);
    }
    std::memset(to + n * row_bytes, 0, sample_bytes - n * row_bytes);
    if (is_ragged) out.lengths[place] = rows;
  }
  out.shape = {samples.size()};
  if (is_ragged) out.shape.push_back(static_cast<std::size_t>(longest));
  out.shape.insert(out.shape.end(), shape.begin(), shape.end());
  out.samples = std::move(samples);
  reader_->drop(scratch);
  return out;
}

void RowBatches::work() {
  const std::unique_ptr<RowReader::Scratch> scratch = reader_->scratch();
  Bucket bucket;
  for (;;) {
    std::uint64_t batch = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] {
        // While somebody waits for the first one, nobody takes cores from who makes it.
        const bool may_begin = begun_ == 0 || taken_ > 0 || made_.contains(0);
        return is_over_ || begun_ == count_ || (may_begin && begun_ < taken_ + settings_.prefetch);
      });
      if (is_over_ || begun_ == count_) return;
      batch = begun_++;
    }
    std::optional<Batch> made;
    std::exception_ptr error;
    try {
      made = make(samples_of(batch, bucket), *scratch, batch == 0);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    if (made)
      made_.emplace(batch, std::move(*made));
    else if (!error_)
      error_ = error;
    is_over_ = is_over_ || error_;
    changed_.notify_all();
    if (is_over_) return;
  }
}

std::optional<RowBatches::Batch> RowBatches::take(double seconds, bool& over) {
  check_process();
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [this] { return is_over_ || taken_ == count_ || made_.contains(taken_); });
  over = taken_ == count_;
  if (const auto it = made_.find(taken_); it != made_.end()) {
    Batch out = std::move(it->second);
    made_.erase(it);
    ++taken_;
    changed_.notify_all();
    return out;
  }
  if (error_) std::rethrow_exception(error_);
  over = over || is_over_;
  return std::nullopt;
}

void RowBatches::stop() {
  if (is_forked_off()) {
    for (std::thread& t : threads_) t.detach();
    threads_.clear();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

}  // namespace melflow
