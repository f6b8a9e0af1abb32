#include "stages/training/sample_batcher.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "stages/permutation.h"

namespace melflow {

SampleBatcher::SampleBatcher(Settings settings, Give give)
    : settings_(std::move(settings)),
      give_(std::move(give)),
      limits_{settings_.size, settings_.max_rows},
      draws_(Permutation::of_epoch(settings_.seed, settings_.epoch)),
      pool_(settings_.pool ? settings_.pool
                           : std::make_shared<BufferPool>(std::numeric_limits<std::size_t>::max())),
      held_pool_(
          settings_.held_bytes > 0
              ? std::make_shared<BufferPool>(
                    settings_.held_bytes * (settings_.shuffle > 0 && settings_.bucket > 0 ? 2 : 1))
              : pool_) {
  for (const std::vector<std::size_t>& shape : settings_.row_shapes)
    row_bytes_.push_back(std::accumulate(shape.begin(), shape.end(),
                                         size_of(settings_.type_of(row_bytes_.size())),
                                         std::multiplies<>()));
}

std::size_t SampleBatcher::memory_of(const SampleView& sample) const {
  std::size_t out = 0;
  for (std::size_t k = 0; k < sample.inputs.size(); ++k)
    out += BufferPool::rounded(bytes_of(k, sample.inputs[k].count));
  return out;
}

bool SampleBatcher::has_room(const Memory& memory, std::size_t bytes) const {
  return settings_.held_bytes == 0 || memory.bytes + bytes <= settings_.held_bytes;
}

SampleBatcher::Held SampleBatcher::hold(const SampleView& sample, BufferPool& pool) {
  Held out{{}, sample, memory_of(sample)};
  out.data.reserve(sample.inputs.size());
  for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
    SampleView::Rows& rows = out.view.inputs[k];
    const std::size_t bytes = bytes_of(k, rows.count);
    Buffer& own = out.data.emplace_back(pool.lease(bytes));
    if (bytes > 0) std::memcpy(own.data(), rows.data, bytes);
    rows.data = own.data();
  }
  return out;
}

bool SampleBatcher::add(const SampleView& sample) {
  if (settings_.shuffle == 0) return place(sample);
  const std::size_t bytes = memory_of(sample);
  bool is_full = shuffled_.size() == settings_.shuffle;
  if (is_full && !draw()) return false;
  while (!has_room(in_shuffled_, bytes)) {
    if (in_shuffled_.most == 0) in_shuffled_.most = std::max<std::size_t>(1, shuffled_.size());
    if (shuffled_.empty()) return place(sample);
    is_full = true;
    if (!draw()) return false;
  }
  shuffled_.push_back(hold(sample, *held_pool_));
  in_shuffled_.bytes += bytes;
  if (is_full || ++came_ % kComeForOne != 0) return is_wanted_;
  return draw();
}

// Draws one of the held samples, and places it in a batch.
bool SampleBatcher::draw() {
  std::swap(shuffled_[draws_.below(shuffled_.size())], shuffled_.back());
  const Held drawn = std::move(shuffled_.back());
  shuffled_.pop_back();
  in_shuffled_.bytes -= drawn.bytes;
  return place(drawn.view);
}

bool SampleBatcher::place(const SampleView& sample) {
  if (!is_wanted_) return false;
  if (settings_.bucket > 0) return put_in_bucket(sample);
  if (passed_over_ < settings_.skip) {
    ++passed_over_;
    return true;
  }
  return settings_.is_ragged ? place_recording(sample) : place_row(sample);
}

bool SampleBatcher::put_in_bucket(const SampleView& sample) {
  // Fewer samples than a batch remain.
  if (!has_room(in_bucket_, memory_of(sample)) && !bucket_.held().empty()) {
    if (in_bucket_.most == 0) in_bucket_.most = bucket_.held().size();
    if (!give_bucket(false)) return false;
  }
  Held held = hold(sample, *held_pool_);
  in_bucket_.bytes += held.bytes;
  const std::int64_t rows = held.rows();
  bucket_.add(std::move(held), rows);
  return bucket_.arrived() < settings_.bucket || give_bucket(false);
}

bool SampleBatcher::give_bucket(bool is_last) {
  auto batches =
      bucket_.cut(limits_, &draws_, [&](auto&) { return is_last && !settings_.drop_last; });
  in_bucket_.bytes = 0;
  for (const Held& h : bucket_.held()) in_bucket_.bytes += h.bytes;
  for (std::vector<Held>& batch : batches) {
    if (passed_over_ < settings_.skip) {
      passed_over_ += batch.size();
    } else {
      recordings_ = std::move(batch);
      if (!give_recordings()) return false;
    }
  }
  return is_wanted_;
}

bool SampleBatcher::place_row(const SampleView& sample) {
  if (batch_.inputs.empty()) begin();
  for (std::size_t k = 0; k < row_bytes_.size(); ++k)
    std::memcpy(batch_.inputs[k].data.data() + batch_.files.size() * row_bytes_[k],
                sample.inputs[k].data, row_bytes_[k]);
  batch_.files.push_back(sample.file);
  batch_.offsets.push_back(sample.offset);
  batch_.results.push_back(sample.result);
  batch_.result_offsets.push_back(sample.result_offset);
  return batch_.files.size() < settings_.size || give();
}

// The padded length is known only when the batch is full.
bool SampleBatcher::place_recording(const SampleView& sample) {
  std::int64_t longest = sample.inputs.front().count;
  for (const Held& h : recordings_) longest = std::max(longest, h.rows());
  if (!limits_.take(recordings_.size(), longest, longest) && !give_recordings()) return false;
  recordings_.push_back(hold(sample, *pool_));
  return !limits_.fill(recordings_.size()) || give_recordings();
}

void SampleBatcher::begin() {
  for (const std::vector<std::size_t>& row : settings_.row_shapes)
    batch_.inputs.emplace_back(*pool_, settings_.type_of(batch_.inputs.size()), settings_.size, row,
                               std::nullopt);
}

bool SampleBatcher::give() {
  for (SampleBatch::Rows& rows : batch_.inputs) rows.shape.front() = batch_.files.size();
  is_wanted_ = give_(std::exchange(batch_, {}));
  return is_wanted_;
}

bool SampleBatcher::give_recordings() {
  for (std::size_t k = 0; k < row_bytes_.size(); ++k) batch_.inputs.push_back(padded(k));
  for (const Held& h : recordings_) {
    batch_.files.push_back(h.view.file);
    batch_.offsets.push_back(h.view.offset);
    batch_.results.push_back(h.view.result);
    batch_.result_offsets.push_back(h.view.result_offset);
  }
  recordings_.clear();
  is_wanted_ = give_(std::exchange(batch_, {}));
  return is_wanted_;
}

// Returns the rows that an input has of the batch's recordings, padded to the longest.
SampleBatch::Rows SampleBatcher::padded(std::size_t input) {
  std::int64_t longest = 0;
  for (const Held& h : recordings_) longest = std::max(longest, h.view.inputs[input].count);
  const std::size_t bytes = bytes_of(input, longest);
  SampleBatch::Rows out(*pool_, settings_.type_of(input), recordings_.size(),
                        settings_.row_shapes[input], static_cast<std::size_t>(longest));
  std::byte* to = out.data.data();
  for (const Held& h : recordings_) {
    const SampleView::Rows& rows = h.view.inputs[input];
    const std::size_t there = bytes_of(input, rows.count);
    if (there > 0) std::memcpy(to, rows.data, there);
    std::memset(to + there, 0, bytes - there);
    to += bytes;
    out.lengths.push_back(rows.count);
  }
  return out;
}

void SampleBatcher::end() {
  while (is_wanted_ && !shuffled_.empty())
    if (!draw()) return;
  if (is_wanted_ && !bucket_.held().empty() && !give_bucket(true)) return;
  if (!is_wanted_ || settings_.drop_last) return;
  if (!recordings_.empty())
    (void)give_recordings();
  else if (!batch_.files.empty())
    (void)give();
}

}  // namespace melflow
