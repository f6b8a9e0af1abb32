#include "stages/output/training/sample_batcher.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "stages/permutation.h"

namespace melflow {
namespace {

// Below `n`, by the high bits of a product, which every machine computes alike.
std::size_t below(std::mt19937_64& random, std::size_t n) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::size_t>((static_cast<Wide>(random()) * n) >> 64);
}

}  // namespace

SampleBatcher::SampleBatcher(Settings settings, Give give)
    : settings_(std::move(settings)),
      give_(std::move(give)),
      row_bytes_(size_of(settings_.type)),
      random_(Permutation::of_epoch(settings_.seed, settings_.epoch)),
      pool_(settings_.pool
                ? settings_.pool
                : std::make_shared<BufferPool>(std::numeric_limits<std::size_t>::max())) {
  for (const std::size_t n : settings_.row_shape) row_bytes_ *= n;
}

SampleBatcher::Held SampleBatcher::hold(const SampleView& sample) {
  Held out{pool_->lease(bytes_of(sample.rows)), sample.rows, sample.file, sample.offset};
  if (sample.rows > 0) std::memcpy(out.data.data(), sample.data, bytes_of(sample.rows));
  return out;
}

bool SampleBatcher::add(const SampleView& sample) {
  if (settings_.shuffle == 0) return sort(sample);
  if (shuffled_.size() < settings_.shuffle) {
    shuffled_.push_back(hold(sample));
    return is_wanted_;
  }
  return draw(&sample);
}

// Gives one of those that are held; `next`, if there is one, takes its place.
bool SampleBatcher::draw(const SampleView* next) {
  Held& at = shuffled_[below(random_, shuffled_.size())];
  if (next == nullptr) std::swap(at, shuffled_.back());
  Held& place_of = next == nullptr ? shuffled_.back() : at;
  const Held drawn = std::move(place_of);
  if (next != nullptr)
    place_of = hold(*next);
  else
    shuffled_.pop_back();
  return sort({drawn.data.data(), drawn.rows, drawn.file, drawn.offset});
}

bool SampleBatcher::sort(const SampleView& sample) {
  if (settings_.bucket == 0) return place(sample);
  bucket_.push_back(hold(sample));
  return bucket_.size() < settings_.bucket || place_sorted();
}

// Rising and falling in turn, so that a batch which has the end of one and the beginning of the next
// is no exception.
bool SampleBatcher::place_sorted() {
  std::stable_sort(bucket_.begin(), bucket_.end(),
                   [](const Held& a, const Held& b) { return a.rows < b.rows; });
  if (is_falling_) std::reverse(bucket_.begin(), bucket_.end());
  is_falling_ = !is_falling_;
  for (const Held& h : std::exchange(bucket_, {}))
    if (!place({h.data.data(), h.rows, h.file, h.offset})) return false;
  return is_wanted_;
}

bool SampleBatcher::place(const SampleView& sample) {
  if (!is_wanted_) return false;
  if (passed_over_ < settings_.skip) {
    ++passed_over_;
    return true;
  }
  return settings_.is_ragged ? place_recording(sample) : place_row(sample);
}

bool SampleBatcher::place_row(const SampleView& sample) {
  if (!batch_.data) begin(1);
  std::memcpy(batch_.data.data() + batch_.files.size() * row_bytes_, sample.data, row_bytes_);
  batch_.files.push_back(sample.file);
  batch_.offsets.push_back(sample.offset);
  return batch_.files.size() < settings_.size || give();
}

// How long the batch is padded to is known when it is full.
bool SampleBatcher::place_recording(const SampleView& sample) {
  std::int64_t longest = sample.rows;
  for (const Held& h : recordings_) longest = std::max(longest, h.rows);
  const std::size_t rows = (recordings_.size() + 1) * static_cast<std::size_t>(longest);
  if (settings_.max_rows > 0 && rows > settings_.max_rows && !recordings_.empty() &&
      !give_recordings())
    return false;
  recordings_.push_back(hold(sample));
  return recordings_.size() < settings_.size || give_recordings();
}

void SampleBatcher::begin(std::size_t rows) {
  const std::size_t samples = settings_.is_ragged ? recordings_.size() : settings_.size;
  batch_.type = settings_.type;
  batch_.data = pool_->lease(std::max<std::size_t>(1, samples * rows * row_bytes_));
}

bool SampleBatcher::give() {
  batch_.shape = {batch_.files.size()};
  batch_.shape.insert(batch_.shape.end(), settings_.row_shape.begin(), settings_.row_shape.end());
  is_wanted_ = give_(std::exchange(batch_, {}));
  return is_wanted_;
}

bool SampleBatcher::give_recordings() {
  std::int64_t longest = 0;
  for (const Held& h : recordings_) longest = std::max(longest, h.rows);
  begin(static_cast<std::size_t>(longest));
  std::byte* to = batch_.data.data();
  for (const Held& h : recordings_) {
    std::memcpy(to, h.data.data(), bytes_of(h.rows));
    std::memset(to + bytes_of(h.rows), 0, bytes_of(longest - h.rows));
    to += bytes_of(longest);
    batch_.lengths.push_back(h.rows);
    batch_.files.push_back(h.file);
    batch_.offsets.push_back(h.offset);
  }
  batch_.shape = {recordings_.size(), static_cast<std::size_t>(longest)};
  batch_.shape.insert(batch_.shape.end(), settings_.row_shape.begin(), settings_.row_shape.end());
  recordings_.clear();
  is_wanted_ = give_(std::exchange(batch_, {}));
  return is_wanted_;
}

void SampleBatcher::end() {
  while (is_wanted_ && !shuffled_.empty())
    if (!draw(nullptr)) return;
  if (is_wanted_ && !place_sorted()) return;
  if (!is_wanted_ || settings_.drop_last) return;
  if (!recordings_.empty())
    (void)give_recordings();
  else if (!batch_.files.empty())
    (void)give();
}

}  // namespace melflow
