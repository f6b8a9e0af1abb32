#include "stages/output/formats/chunk_log.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace melflow {
namespace {

struct Header {
  static constexpr std::uint32_t kMark = 0x6b63666d;  // "mfck"
  std::uint32_t mark = kMark;
  std::uint32_t filter_mask = 0;
  std::uint64_t index = 0, bytes = 0;
  std::uint64_t hash = 0;  // XXH3 of the packed bytes
};

constexpr std::size_t kLooksClosely = 64;  // last chunks to check: earlier ones are complete

}  // namespace

// Marks a chunk as being written to its position, until that has succeeded or failed.
class ChunkLog::Writing {
 public:
  Writing(ChunkLog& log, std::int64_t index) : log_(log), index_(index) {}
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  ~Writing() {
    const std::lock_guard lock(log_.mutex_);
    log_.busy_.erase(index_);
    log_.is_written_.notify_all();
  }

 private:
  ChunkLog& log_;
  std::int64_t index_;
};

void ChunkLog::scan(std::size_t most) {
  const std::uint64_t size = file_.size();
  std::vector<std::uint64_t> hashes;
  for (Header h; end_ + sizeof h <= size; end_ += sizeof h + h.bytes) {
    if (!file_.try_get(&h, sizeof h, end_) || h.mark != Header::kMark ||
        h.index != places_.size() || h.bytes > most || end_ + sizeof h + h.bytes > size)
      break;
    places_.push_back({end_ + sizeof h, h.bytes, h.filter_mask});
    hashes.push_back(h.hash);
  }
  std::vector<char> bytes;
  const std::size_t from = places_.size() - std::min(places_.size(), kLooksClosely);
  for (std::size_t i = from; i < places_.size(); ++i) {
    bytes.resize(places_[i].bytes);
    if (file_.try_get(bytes.data(), bytes.size(), places_[i].at) &&
        XXH3_64bits(bytes.data(), bytes.size()) == hashes[i])
      continue;
    end_ = places_[i].at - sizeof(Header);
    places_.resize(i);
  }
}

void ChunkLog::add(std::int64_t index, const ChunkCodec::Packed& packed) {
  std::unique_lock lock(mutex_);
  if (index > next()) return park(index, packed);
  const Place place = begin_place(index, packed.bytes.size(), packed.filter_mask);
  lock.unlock();
  {
    const Writing writing(*this, index);
    put(index, place, packed.bytes);
  }
  put_parked();
}

// Writes the parked chunks whose turn has come.
void ChunkLog::put_parked() {
  for (;;) {
    std::unique_lock lock(mutex_);
    if (parked_.empty() || parked_.begin()->first > next()) return;
    const auto first = parked_.extract(parked_.begin());
    const Parked& parked = first.mapped();
    const Place place = begin_place(first.key(), parked.place.bytes, parked.place.filter_mask);
    lock.unlock();
    const Writing writing(*this, first.key());
    put(first.key(), place, bytes_of(parked));
  }
}

// With the mutex held; the caller then makes a Writing.
ChunkLog::Place ChunkLog::begin_place(std::int64_t index, std::size_t bytes,
                                      std::uint32_t filter_mask) {
  const Place place{end_ + sizeof(Header), bytes, filter_mask};
  end_ = place.at + bytes;
  if (index == next())
    places_.push_back(place);
  else
    places_[static_cast<std::size_t>(index)] = place;
  busy_.insert(index);
  return place;
}

void ChunkLog::put(std::int64_t index, const Place& place, std::span<const std::byte> bytes) const {
  const Header header{.filter_mask = place.filter_mask,
                      .index = static_cast<std::uint64_t>(index),
                      .bytes = bytes.size(),
                      .hash = XXH3_64bits(bytes.data(), bytes.size())};
  file_.put(bytes.data(), bytes.size(), place.at);
  file_.put(&header, sizeof header, place.at - sizeof header);
}

// With the mutex held.
void ChunkLog::park(std::int64_t index, const ChunkCodec::Packed& packed) {
  Parked parked;
  parked.place = {0, packed.bytes.size(), packed.filter_mask};
  if (parked_.size() < most_parked_) {
    parked.bytes.assign(packed.bytes.begin(), packed.bytes.end());
  } else {
    if (spill_.use_count() == 1) spill_end_ = 0;
    spill_->put(packed.bytes.data(), packed.bytes.size(), spill_end_);
    parked.spill = spill_;
    parked.place.at = std::exchange(spill_end_, spill_end_ + packed.bytes.size());
  }
  parked_[index] = std::move(parked);
}

std::vector<std::byte> ChunkLog::bytes_of(const Parked& parked) {
  if (!parked.spill) return parked.bytes;
  std::vector<std::byte> out(parked.place.bytes);
  parked.spill->get(out.data(), out.size(), parked.place.at);
  return out;
}

bool ChunkLog::has(std::int64_t index) const {
  const std::lock_guard lock(mutex_);
  return index < next() || parked_.contains(index);
}

std::optional<ChunkLog::Packed> ChunkLog::load(std::int64_t index) const {
  std::unique_lock lock(mutex_);
  is_written_.wait(lock, [&] { return !busy_.contains(index); });
  if (const auto it = parked_.find(index); it != parked_.end())
    return Packed{bytes_of(it->second), it->second.place.filter_mask};
  if (index >= next()) return std::nullopt;
  const Place place = places_[static_cast<std::size_t>(index)];
  lock.unlock();
  Packed out{std::vector<std::byte>(place.bytes), place.filter_mask};
  if (!file_.try_get(out.bytes.data(), out.bytes.size(), place.at)) return std::nullopt;
  return out;
}

void ChunkLog::cut(std::int64_t index) {
  std::unique_lock lock(mutex_);
  is_written_.wait(lock, [&] { return busy_.empty() || *busy_.rbegin() < index; });
  parked_.erase(parked_.lower_bound(index), parked_.end());
  if (index >= next()) return;
  end_ = places_[static_cast<std::size_t>(index)].at - sizeof(Header);
  places_.resize(static_cast<std::size_t>(index));
  file_.cut(end_);
}

std::int64_t ChunkLog::safe() const {
  const std::lock_guard lock(mutex_);
  return busy_.empty() ? next() : std::min(next(), *busy_.begin());
}

}  // namespace melflow
