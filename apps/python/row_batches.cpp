#include "apps/python/row_batches.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/threads.h"

namespace melflow {
namespace {

constexpr std::uint64_t kMostReplaced = 100;  // attempts per sample

// Returns the number of samples; `ends` gets their number up to the end of each range of rows.
std::uint64_t samples_in(const RowBatches::Settings& settings, std::vector<std::int64_t>& ends) {
  if (settings.is_ragged) return settings.starts.size();
  std::partial_sum(settings.counts.begin(), settings.counts.end(), std::back_inserter(ends));
  return ends.empty() ? 0 : static_cast<std::uint64_t>(ends.back());
}

}  // namespace

RowBatches::RowBatches(std::shared_ptr<const RowReader> reader,
                       std::shared_ptr<const EpochOrder> order, Settings settings)
    : reader_(std::move(reader)),
      order_(std::move(order)),
      settings_(std::move(settings)),
      samples_(samples_in(settings_, ends_)) {
  check_process();
  const std::size_t columns = reader_->row_shape().empty() ? 1 : reader_->row_shape().back();
  for (std::size_t at = 0; at < settings_.mean.size(); at += columns) {
    const auto of_group = [&](const std::vector<double>& values) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(at);
      return std::vector<double>(first, first + static_cast<std::ptrdiff_t>(columns));
    };
    scales_.push_back(fixed_step(of_group(settings_.mean), of_group(settings_.std)));
  }
  for (std::size_t i = 0; i < std::max<std::size_t>(1, settings_.threads); ++i)
    if (!add_thread(threads_, "rows", [this] { work(); }) && threads_.empty())
      throw RunError(no_thread_text("the loader of rows"));
  if (settings_.ahead > 0)  // without this thread the result is the same, only slower
    static_cast<void>(add_thread(threads_, "look-ahead", [this] { look_ahead(); }));
}

RowBatches::~RowBatches() { stop(); }

std::size_t RowBatches::range_with(std::int64_t sample) const {
  if (settings_.is_ragged) return static_cast<std::size_t>(sample);
  return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), sample) -
                                  ends_.begin());
}

std::uint64_t RowBatches::first_row(std::int64_t sample) const {
  const std::size_t range = range_with(sample);
  if (settings_.is_ragged) return static_cast<std::uint64_t>(settings_.starts[range]);
  const std::int64_t before = range > 0 ? ends_[range - 1] : 0;
  return static_cast<std::uint64_t>(settings_.starts[range] + sample - before);
}

// Replaces samples that can no longer be read, in the same way wherever the same recordings are
// lost, and by samples no longer than the batch allows, if possible.
void RowBatches::replace_lost(EpochOrder::Batch& batch, RowReader::Scratch& scratch,
                              bool is_urgent) const {
  std::vector<std::int64_t>& samples = batch.samples;
  std::vector<RowReader::Range> ranges;
  for (const std::int64_t s : samples) ranges.push_back(range_of(s));
  std::vector<std::size_t> places = reader_->fetch(ranges, scratch, is_urgent);
  if (places.empty()) return;
  const std::vector<std::int64_t> lost = samples;
  std::vector<std::uint64_t> attempts(samples.size());
  const auto other = [&](std::size_t place) {
    std::int64_t out = -1;
    for (std::uint64_t i = 0; i < samples_ && (out < 0 || rows_of(out) > batch.longest); ++i)
      out = order_->other(lost[place], attempts[place]++);
    return out;
  };
  for (std::uint64_t attempt = 0; !places.empty(); ++attempt) {
    if (attempt == kMostReplaced)
      throw RunError(
          fmt::format("{} samples one after the other cannot be read any more; the last one: {}",
                      kMostReplaced + 1, reader_->last_loss()));
    ranges.clear();
    for (const std::size_t p : places) {
      samples[p] = other(p);
      ranges.push_back(range_of(samples[p]));
    }
    std::vector<std::size_t> still;
    for (const std::size_t i : reader_->fetch(ranges, scratch, is_urgent))
      still.push_back(places[i]);
    places = std::move(still);
  }
}

RowBatches::Batch RowBatches::make(EpochOrder::Batch batch, RowReader::Scratch& scratch,
                                   bool is_urgent) {
  replace_lost(batch, scratch, is_urgent);
  std::vector<std::int64_t>& samples = batch.samples;
  const bool is_ragged = settings_.is_ragged;
  const NumberType stored_type = reader_->type();
  const bool as_float =
      !scales_.empty() || (settings_.as_float32 && stored_type != NumberType::float32);
  Batch out;
  out.type = as_float ? NumberType::float32 : stored_type;
  const std::vector<std::size_t>& shape = reader_->row_shape();
  std::int64_t longest = 1;
  for (const std::int64_t s : samples) longest = std::max(longest, rows_of(s));
  const std::size_t values = reader_->values_per_row();
  const std::size_t row_bytes = values * size_of(out.type);
  const std::size_t sample_bytes = static_cast<std::size_t>(longest) * row_bytes;
  out.data = reader_->pool().lease(std::max<std::size_t>(1, samples.size() * sample_bytes));
  // Values that are converted or scaled after reading should stay in the cache.
  scratch.streams = !as_float && samples.size() * sample_bytes >= kBeyondCaches;
  // Reads samples by position in the file, so that each chunk is unpacked once.
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
    if (!scales_.empty()) {
      const std::size_t columns = shape.empty() ? 1 : shape.back();
      MemoryRows scaled(reinterpret_cast<float*>(to),
                        rows * static_cast<std::int64_t>(values / columns),
                        static_cast<int>(columns));
      const std::size_t group =
          settings_.groups.empty()
              ? 0
              : static_cast<std::size_t>(settings_.groups[range_with(samples[place])]);
      scales_[group]->run(scaled, scaled);
    }
    std::memset(to + n * row_bytes, 0, sample_bytes - n * row_bytes);
    if (is_ragged) out.lengths[place] = rows;
  }
  out.shape = {samples.size()};
  if (is_ragged) out.shape.push_back(static_cast<std::size_t>(longest));
  out.shape.insert(out.shape.end(), shape.begin(), shape.end());
  out.samples = std::move(samples);
  out.end = batch.end;
  reader_->confirm();
  reader_->drop(scratch);
  return out;
}

void RowBatches::work() {
  const std::unique_ptr<RowReader::Scratch> scratch = reader_->scratch();
  for (;;) {
    std::uint64_t batch = 0;
    {
      std::unique_lock lock(mutex_);
      changed_->wait(lock, [this] {
        // While a caller waits for the first batch, no other batch may take cores from it.
        const bool may_begin = begun_ == 0 || taken_ > 0 || made_.contains(0);
        return is_over_ || begun_ == order_->count() ||
               (may_begin && begun_ < taken_ + settings_.prefetch);
      });
      if (is_over_ || begun_ == order_->count()) return;
      batch = begun_++;
    }
    std::optional<Batch> made;
    std::exception_ptr error;
    try {
      made = make(order_->batch(batch, settings_.rank), *scratch, batch == 0);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    if (made)
      made_.emplace(batch, std::move(*made));
    else if (!error_)
      error_ = error;
    is_over_ = is_over_ || error_;
    changed_->notify_all();
    if (is_over_) return;
  }
}

void RowBatches::look_ahead() {
  std::vector<RowReader::Range> ranges;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_->wait(lock, [this] {
        looked_at_ = std::max(looked_at_, begun_);
        return is_over_ || looked_at_ >= order_->count() ||
               ((taken_ > 0 || made_.contains(0)) &&
                looked_at_ < taken_ + settings_.prefetch + settings_.ahead);
      });
      if (is_over_ || looked_at_ >= order_->count()) return;
      ranges.clear();
      for (const std::int64_t s : order_->batch(looked_at_++, settings_.rank).samples)
        ranges.push_back(range_of(s));
    }
    reader_->prefetch(ranges);
  }
}

std::optional<RowBatches::Batch> RowBatches::take(double seconds, bool& over) {
  check_process();
  std::unique_lock lock(mutex_);
  changed_->wait_for(lock, std::chrono::duration<double>(seconds), [this] {
    return is_over_ || taken_ == order_->count() || made_.contains(taken_);
  });
  over = taken_ == order_->count();
  if (const auto it = made_.find(taken_); it != made_.end()) {
    Batch out = std::move(it->second);
    made_.erase(it);
    ++taken_;
    changed_->notify_all();
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
  const std::lock_guard one(stopping_);
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_->notify_all();
  }
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

}  // namespace melflow
