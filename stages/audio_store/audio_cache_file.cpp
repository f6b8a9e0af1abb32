#include "stages/audio_store/audio_cache_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "pipeline/problem.h"
#include "stages/files/whole_io.h"

namespace melflow {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAlignment = 64;  // of samples
constexpr std::array<std::size_t, 2> kSlotPlace{512, 1024};
constexpr std::size_t kLeastCommit = 1024;                 // entries
constexpr std::size_t kKeptPages = std::size_t{16} << 20;  // released, but still mapped [bytes]
constexpr std::size_t kReadAhead = std::size_t{1} << 20;   // of one recording [bytes]
constexpr std::size_t kVerified = std::size_t{4} << 20;    // at once [bytes]

struct Header {
  std::array<char, 8> magic{'m', 'e', 'l', 'f', 'l', 'o', 'w', 'A'};
  std::uint32_t version = 1;
  std::uint32_t byte_order = 0x01020304;
  CacheKey contract;
  std::uint64_t checksum = 0;
};

std::uint64_t header_checksum(const Header& h) {
  return XXH3_64bits(&h, offsetof(Header, checksum));
}

constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

// A part of the file that is written through memory.
class WrittenRange {
 public:
  WrittenRange(int fd, std::uint64_t offset, std::size_t bytes) : bytes_(bytes) {
    // Beforehand, because a store into a page that finds no room on the disk ends the process.
    error_ = posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    if (error_ != 0) return;
    void* p =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (p == MAP_FAILED)
      error_ = errno;
    else
      data_ = p;
  }
  WrittenRange(const WrittenRange&) = delete;
  WrittenRange& operator=(const WrittenRange&) = delete;
  ~WrittenRange() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
  int error_ = 0;
};

using Entry = AudioCacheFile::Entry;

// The place of a key in the table, or the free one where it would be; any place where a table that
// is not ours has no free one.
std::size_t place_of(const Entry* table, std::uint64_t capacity, const CacheKey& key) {
  const std::uint64_t mask = capacity - 1;
  std::uint64_t at = key.low & mask;
  for (std::uint64_t i = 0; i < mask && table[at].count != 0 && !(table[at].key == key); ++i)
    at = (at + 1) & mask;
  return at;
}

// What no recording has would be divided by, or wrap.
bool is_possible(const Entry& e) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  return e.count > 0 && e.count < kMost && e.file_frames >= 0 && e.sample_rate > 0 &&
         e.file_rate > 0 && e.extents > 0 && e.type <= static_cast<std::uint32_t>(SampleType::float32);
}

}  // namespace

CacheKey cache_key(std::string_view text) {
  const XXH128_hash_t h = XXH3_128bits(text.data(), text.size());
  return {h.high64, h.low64};
}

AudioCacheFile::AudioCacheFile(std::string path, const CacheKey& contract, Access access)
    : path_(std::move(path)), contract_(contract) {
  static_assert(sizeof(Entry) == 80 && sizeof(Slot) == 56 && sizeof(Header) == 40);
  if (access == Access::read_write)
    open_for_writing();
  else
    open_for_reading();
}

AudioCacheFile::~AudioCacheFile() {
  if (map_ != nullptr) munmap(map_, mapped_);
}

// ---- opening
// --------------------------------------------------------------------------------------

void AudioCacheFile::open_for_writing() {
  for (;;) {
    fd_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!fd_) {
      note_ = fmt::format("cannot be written: {}", std::strerror(errno));
      return open_for_reading();
    }
    if (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      note_ = errno == EWOULDBLOCK ? std::string("is being written by another run")
                                   : fmt::format("cannot be locked: {}", std::strerror(errno));
      return open_for_reading();
    }
    if (is_at_path()) break;  // else it was replaced before it was locked
  }
  is_writer_ = true;
  switch (load()) {
    case Content::good:
      return;
    case Content::unusable:
      note_ = "was damaged or none of this version and is made anew";
      replace();
      break;
    case Content::empty:
      break;
  }
  if (!write_header()) throw RunError(fmt::format("{}: cannot be written: {}", path_, error()));
  end_ = kPage;
}

void AudioCacheFile::open_for_reading() {
  fd_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd_ && note_.empty()) note_ = fmt::format("cannot be opened: {}", std::strerror(errno));
  if (!fd_) throw RunError(path_ + ": " + note_);
  load();
}

bool AudioCacheFile::is_at_path() const {
  struct stat mine {
  }, there{};
  return fstat(fd_.get(), &mine) == 0 && stat(path_.c_str(), &there) == 0 &&
         mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

// By an empty file that is locked before it has the name. The lock on the old one is held until
// then, so nobody else does the same.
void AudioCacheFile::replace() {
  const std::string fresh = path_ + ".new";
  ::unlink(fresh.c_str());
  UniqueFd fd(::open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd || flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || ::rename(fresh.c_str(), path_.c_str()) != 0)
    throw RunError(
        fmt::format("{}: {}, but cannot be replaced: {}", path_, note_, std::strerror(errno)));
  fd_ = std::move(fd);
}

bool AudioCacheFile::write_header() {
  Header header;
  header.contract = contract_;
  header.checksum = header_checksum(header);
  std::vector<std::byte> page(kPage);
  std::memcpy(page.data(), &header, sizeof header);
  return write_all(0, page);
}

AudioCacheFile::Content AudioCacheFile::load() {
  struct stat st {};
  if (fstat(fd_.get(), &st) != 0) return Content::unusable;
  const auto size = static_cast<std::uint64_t>(st.st_size);
  if (size == 0) return Content::empty;
  std::array<std::byte, kPage> page{};
  if (pread(fd_.get(), page.data(), page.size(), 0) != static_cast<ssize_t>(page.size()))
    return Content::unusable;
  Header header;
  std::memcpy(&header, page.data(), sizeof header);
  const Header expected;
  if (header.magic != expected.magic || header.version != expected.version ||
      header.byte_order != expected.byte_order || !(header.contract == contract_) ||
      header.checksum != header_checksum(header))
    return Content::unusable;
  std::array<Slot, 2> slots;
  for (std::size_t i = 0; i < slots.size(); ++i)
    std::memcpy(&slots[i], page.data() + kSlotPlace[i], sizeof(Slot));
  const auto never_written = [](const Slot& s) { return s.sequence == 0 && s.checksum == 0; };
  if (never_written(slots[0]) && never_written(slots[1])) return Content::empty;
  if (slots[0].sequence < slots[1].sequence) std::swap(slots[0], slots[1]);
  if (load_slot(slots[0], size)) {
    end_ = opened_.end;
    return Content::good;
  }
  if (!load_slot(slots[1], size)) return Content::unusable;
  // Another process may still use what the damaged commit holds.
  end_ = round_up(std::max(size, opened_.end), kPage);
  return Content::good;
}

bool AudioCacheFile::load_slot(const Slot& slot, std::uint64_t file_size) {
  if (slot.sequence == 0 || slot.checksum != slot_checksum(slot)) return false;
  if (slot.end > file_size || !std::has_single_bit(slot.capacity) ||
      slot.entries >= slot.capacity || slot.capacity > slot.end / sizeof(Entry) ||
      slot.index_offset % kPage != 0 ||
      slot.index_offset > slot.end - slot.capacity * sizeof(Entry))
    return false;
  void* p = mmap(nullptr, slot.end, PROT_READ, MAP_SHARED, fd_.get(), 0);
  if (p == MAP_FAILED) return false;
  const auto* table = static_cast<const std::byte*>(p) + slot.index_offset;
  if (XXH3_64bits(table, slot.capacity * sizeof(Entry)) != slot.index_checksum) {
    munmap(p, slot.end);
    return false;
  }
  map_ = static_cast<std::byte*>(p);
  mapped_ = slot.end;
  opened_ = last_ = slot;
  committed_entries_ = slot.entries;
  return true;
}

std::uint64_t AudioCacheFile::slot_checksum(const Slot& slot) {
  return XXH3_64bits(&slot, offsetof(Slot, checksum));
}

// ---- reading
// --------------------------------------------------------------------------------------

std::optional<AudioCacheFile::Entry> AudioCacheFile::find(const CacheKey& key,
                                                          const FileStamp& stamp) const {
  if (map_ == nullptr) return std::nullopt;
  const auto* table = reinterpret_cast<const Entry*>(map_ + opened_.index_offset);
  const Entry& e = table[place_of(table, opened_.capacity, key)];
  if (!(e.key == key) || !is_possible(e) || !(e.stamp == stamp)) return std::nullopt;
  return e;
}

std::span<const std::byte> AudioCacheFile::range(std::uint64_t offset, std::uint64_t bytes) const {
  if (bytes > mapped_ || offset > mapped_ - bytes) return {};
  return {map_ + offset, bytes};
}

std::vector<std::span<const std::byte>> AudioCacheFile::samples(const Entry& entry) const {
  std::vector<std::span<const std::byte>> out;
  if (entry.extents == 1) {
    out.push_back(range(entry.place, entry.bytes()));
  } else {
    const auto table = range(entry.place, std::uint64_t{entry.extents} * sizeof(Extent));
    std::uint64_t bytes = 0;
    for (std::size_t at = 0; at < table.size(); at += sizeof(Extent)) {
      Extent e;
      std::memcpy(&e, table.data() + at, sizeof e);
      out.push_back(range(e.offset, e.bytes));
      bytes += out.back().size();
    }
    if (bytes != entry.bytes()) return {};
  }
  if (std::any_of(out.begin(), out.end(), [](const auto& s) { return s.empty(); })) return {};
  return out;
}

bool AudioCacheFile::verify(const Entry& entry) const {
  const auto pieces = samples(entry);
  if (pieces.empty()) return false;
  if (pieces.size() == 1 && pieces[0].size() <= kVerified)
    return XXH3_64bits(pieces[0].data(), pieces[0].size()) == entry.checksum;
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  for (std::span<const std::byte> piece : pieces) {
    while (!piece.empty()) {
      const auto part = piece.first(std::min(piece.size(), kVerified));
      XXH3_64bits_update(state, part.data(), part.size());
      piece = piece.subspan(part.size());
      release(part.size());
    }
  }
  const std::uint64_t sum = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  return sum == entry.checksum;
}

void AudioCacheFile::prefetch(const Entry& entry) const {
  if (entry.extents != 1) return;
  const std::uint64_t begin = entry.place / kPage * kPage;
  const auto part =
      range(begin, std::min<std::uint64_t>(entry.place + entry.bytes() - begin, kReadAhead));
  if (!part.empty()) madvise(const_cast<std::byte*>(part.data()), part.size(), MADV_WILLNEED);
}

void AudioCacheFile::release(std::size_t bytes) const {
  const std::size_t before = released_.fetch_add(bytes);
  if (before / kKeptPages != (before + bytes) / kKeptPages) madvise(map_, mapped_, MADV_DONTNEED);
}

// ---- writing
// --------------------------------------------------------------------------------------

void AudioCacheFile::fail(int error) {
  int none = 0;
  error_.compare_exchange_strong(none, error);
}

std::string AudioCacheFile::error() const {
  const int error = error_;
  return error == 0 ? "" : std::strerror(error);
}

bool AudioCacheFile::write_all(std::uint64_t offset, std::span<const std::byte> bytes) {
  const int error = write_whole(fd_.get(), bytes.data(), bytes.size(), offset);
  if (error != 0) return fail(error), false;
  return true;
}

std::optional<AudioCacheFile::Extent> AudioCacheFile::append(std::span<const std::byte> samples) {
  const Extent out{end_.fetch_add(round_up(samples.size(), kAlignment)), samples.size()};
  if (!write_all(out.offset, samples)) return std::nullopt;
  return out;
}

bool AudioCacheFile::add(Entry entry, std::span<const Extent> extents) {
  entry.extents = static_cast<std::uint32_t>(extents.size());
  entry.place = extents.front().offset;
  if (extents.size() > 1) {
    const auto table = append(std::as_bytes(extents));
    if (!table) return false;
    entry.place = table->offset;
  }
  std::vector<Entry> fresh;
  {
    const std::lock_guard lock(pending_mutex_);
    pending_.push_back(entry);
    if (pending_.size() < std::max<std::size_t>(kLeastCommit, committed_entries_ / 4)) return true;
    fresh.swap(pending_);
  }
  return commit(fresh);
}

bool AudioCacheFile::commit() {
  std::vector<Entry> fresh;
  {
    const std::lock_guard lock(pending_mutex_);
    fresh.swap(pending_);
  }
  return fresh.empty() || commit(fresh);
}

// The new table holds what is fresh and whatever else the last one has.
bool AudioCacheFile::commit(const std::vector<Entry>& fresh) {
  const std::lock_guard lock(commit_mutex_);
  const std::uint64_t most = last_.entries + fresh.size();
  Slot slot;
  slot.sequence = last_.sequence + 1;
  slot.capacity = std::bit_ceil(most + most / 3 + 2);
  const std::size_t bytes = slot.capacity * sizeof(Entry);
  // Aligned, whatever others append meanwhile.
  slot.index_offset = round_up(end_.fetch_add(bytes + kPage), kPage);
  const WrittenRange written(fd_.get(), slot.index_offset, bytes);
  if (written.error() != 0) return fail(written.error()), false;
  auto* table = static_cast<Entry*>(written.data());
  std::memset(written.data(), 0, bytes);  // an interrupted build may have left something there
  const auto enter = [&](const Entry& e) {
    Entry& place = table[place_of(table, slot.capacity, e.key)];
    if (place.count != 0) return;
    place = e;
    ++slot.entries;
  };
  for (const Entry& e : fresh) enter(e);
  if (last_.entries > 0) {
    const std::size_t old_bytes = last_.capacity * sizeof(Entry);
    void* old = mmap(nullptr, old_bytes, PROT_READ, MAP_SHARED, fd_.get(),
                     static_cast<off_t>(last_.index_offset));
    if (old == MAP_FAILED) return fail(errno), false;
    const auto* entries = static_cast<const Entry*>(old);
    for (std::uint64_t i = 0; i < last_.capacity; ++i)
      if (entries[i].count != 0) enter(entries[i]);
    munmap(old, old_bytes);
  }
  slot.index_checksum = XXH3_64bits(table, bytes);
  slot.end = slot.index_offset + bytes;  // behind all samples that are referred to
  slot.checksum = slot_checksum(slot);
  if (!write_all(kSlotPlace[slot.sequence % 2], std::as_bytes(std::span(&slot, 1)))) return false;
  last_ = slot;
  committed_entries_ = slot.entries;
  return true;
}

}  // namespace melflow
