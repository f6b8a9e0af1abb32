#include "stages/audio/store/audio_cache_file.h"

#include <fcntl.h>
#include <sys/file.h>
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

#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "stages/files/byte_hash.h"
#include "stages/files/own_file.h"
#include "stages/files/whole_io.h"

namespace melflow {
namespace {

constexpr std::size_t kSampleAlignment = 64;               // of samples
constexpr std::size_t kLeastCommit = 1024;                 // entries
constexpr std::size_t kKeptPages = std::size_t{16} << 20;  // released, but still mapped [bytes]
constexpr std::size_t kReadAhead = std::size_t{1} << 20;   // of one recording [bytes]
constexpr std::size_t kVerified = std::size_t{4} << 20;    // at once [bytes]

constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

}  // namespace

AudioCacheFile::AudioCacheFile(std::string path, const CacheKey& key, Access access)
    : path_(std::move(path)), key_(key) {
  if (access == Access::read_write)
    open_for_writing();
  else
    open_for_reading();
}

// ---- Opening

void AudioCacheFile::open_for_writing() {
  for (;;) {
    constexpr int kFlags = (kInputFlags & ~O_ACCMODE) | O_RDWR | O_CREAT;
    fd_ = UniqueFd(::open(path_.c_str(), kFlags, 0644));
    struct stat st {};
    if (fd_ && fstat(fd_.get(), &st) == 0 && !S_ISREG(st.st_mode))
      throw RunError(fmt::format("{}: this is {}", path_, not_a_file(st.st_mode)));
    if (!fd_) {
      note_ = fmt::format("cannot be written: {}", std::strerror(errno));
      return open_for_reading();
    }
    if (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      note_ = errno == EWOULDBLOCK ? std::string("is being written by another run")
                                   : fmt::format("cannot be locked: {}", std::strerror(errno));
      return open_for_reading();
    }
    if (is_at_path()) break;  // otherwise it was replaced before it was locked
  }
  is_writer_ = true;
  switch (load()) {
    case Content::good:
      return;
    case Content::unusable:
      note_ = "is damaged or from another version, and is recreated";
      replace();
      break;
    case Content::empty:
      break;
  }
  if (!write_all(0, cache_header(key_)))
    throw RunError(fmt::format("{}: cannot be written: {}", path_, error()));
  end_ = kCachePage;
}

void AudioCacheFile::open_for_reading() {
  InputFile file(path_);
  if (!file.problem().empty())
    throw RunError(fmt::format("{}: {}", path_, note_.empty() ? file.problem() : note_));
  fd_ = UniqueFd(file.release());
  load();
}

bool AudioCacheFile::is_at_path() const {
  struct stat mine {
  }, there{};
  return fstat(fd_.get(), &mine) == 0 && stat(path_.c_str(), &there) == 0 &&
         mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

// Replaces the file by an empty one, locked before it gets the name. The lock on the old file is
// held until then, so no other process does the same.
void AudioCacheFile::replace() {
  const std::string fresh = path_ + ".new";
  UniqueFd fd = create_own(fresh, "melflowA");
  if (::rename(fresh.c_str(), path_.c_str()) != 0)
    throw RunError(
        fmt::format("{}: {}, but cannot be replaced: {}", path_, note_, std::strerror(errno)));
  fd_ = std::move(fd);
}

AudioCacheFile::Content AudioCacheFile::load() {
  struct stat st {};
  if (fstat(fd_.get(), &st) != 0) return Content::unusable;
  const auto size = static_cast<std::uint64_t>(st.st_size);
  if (size == 0) return Content::empty;
  CachePage page{};
  if (pread(fd_.get(), page.data(), page.size(), 0) != static_cast<ssize_t>(page.size()) ||
      !is_cache_header(page, key_))
    return Content::unusable;
  const std::array<CacheCommit, 2> commits = cache_commits(page);
  if (commits[0].was_never_written() && commits[1].was_never_written()) return Content::empty;
  if (load_commit(commits[0], size)) {
    end_ = opened_.end;
    return Content::good;
  }
  if (!load_commit(commits[1], size)) return Content::unusable;
  // Another process may still use the data of the damaged commit.
  end_ = round_up(std::max(size, opened_.end), kCachePage);
  return Content::good;
}

bool AudioCacheFile::load_commit(const CacheCommit& commit, std::uint64_t file_size) {
  if (!commit.is_good(file_size)) return false;
  MappedRange map(fd_.get(), 0, commit.end);
  if (map.data() == nullptr ||
      XXH3_64bits(map.data() + commit.index_offset, commit.capacity * sizeof(Entry)) !=
          commit.index_checksum)
    return false;
  map_ = std::move(map);
  opened_ = last_ = commit;
  committed_entries_ = commit.entries;
  return true;
}

// ---- Reading

std::optional<AudioCacheFile::Entry> AudioCacheFile::find(const CacheKey& key,
                                                          const FileStamp& stamp) const {
  if (map_.data() == nullptr) return std::nullopt;
  const auto* table = reinterpret_cast<const Entry*>(map_.data() + opened_.index_offset);
  const Entry& e = table[cache_place_of(table, opened_.capacity, key)];
  if (!(e.key == key) || !e.is_possible() || !(e.stamp == stamp)) return std::nullopt;
  return e;
}

std::span<const std::byte> AudioCacheFile::range(std::uint64_t offset, std::uint64_t bytes) const {
  if (bytes > map_.size() || offset > map_.size() - bytes) return {};
  return {map_.data() + offset, bytes};
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
  ByteHash hash;
  for (std::span<const std::byte> piece : pieces) {
    while (!piece.empty()) {
      const auto part = piece.first(std::min(piece.size(), kVerified));
      hash.add(part.data(), part.size());
      piece = piece.subspan(part.size());
      release(part.size());
    }
  }
  return hash.value() == entry.checksum;
}

void AudioCacheFile::prefetch(const Entry& entry) const {
  if (entry.extents != 1) return;
  const std::uint64_t begin = entry.place / kCachePage * kCachePage;
  const auto part =
      range(begin, std::min<std::uint64_t>(entry.place + entry.bytes() - begin, kReadAhead));
  if (!part.empty()) madvise(const_cast<std::byte*>(part.data()), part.size(), MADV_WILLNEED);
}

void AudioCacheFile::release(std::size_t bytes) const {
  const std::size_t before = released_.fetch_add(bytes);
  if (before / kKeptPages != (before + bytes) / kKeptPages)
    madvise(map_.data(), map_.size(), MADV_DONTNEED);
}

// ---- Writing

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
  const Extent out{end_.fetch_add(round_up(samples.size(), kSampleAlignment)), samples.size()};
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

// Writes a new table with the fresh entries and all others of the last one.
bool AudioCacheFile::commit(const std::vector<Entry>& fresh) {
  const std::lock_guard lock(commit_mutex_);
  const std::uint64_t most = last_.entries + fresh.size();
  CacheCommit commit;
  commit.sequence = last_.sequence + 1;
  commit.capacity = std::bit_ceil(most + most / 3 + 2);
  const std::size_t bytes = commit.capacity * sizeof(Entry);
  // Leaves room to align the offset, whatever others append meanwhile.
  commit.index_offset = round_up(end_.fetch_add(bytes + kCachePage), kCachePage);
  // Allocated in advance: a store into a page for which the disk has no room ends the process.
  if (const int error = allocate_whole(fd_.get(), commit.index_offset, bytes); error != 0)
    return fail(error), false;
  const MappedRange written(fd_.get(), commit.index_offset, bytes, PROT_READ | PROT_WRITE);
  if (written.data() == nullptr) return fail(errno), false;
  auto* table = reinterpret_cast<Entry*>(written.data());
  std::memset(written.data(), 0, bytes);  // an interrupted build may have left data there
  const auto enter = [&](const Entry& e) {
    Entry& place = table[cache_place_of(table, commit.capacity, e.key)];
    if (place.count != 0) return;
    place = e;
    ++commit.entries;
  };
  for (const Entry& e : fresh) enter(e);
  if (last_.entries > 0) {
    const MappedRange old(fd_.get(), last_.index_offset, last_.capacity * sizeof(Entry));
    if (old.data() == nullptr) return fail(errno), false;
    const auto* entries = reinterpret_cast<const Entry*>(old.data());
    for (std::uint64_t i = 0; i < last_.capacity; ++i)
      if (entries[i].count != 0) enter(entries[i]);
  }
  commit.index_checksum = XXH3_64bits(table, bytes);
  commit.end = commit.index_offset + bytes;  // after all samples that are referred to
  commit.sign();
  if (!write_all(kCacheCommitPlace[commit.sequence % 2], std::as_bytes(std::span(&commit, 1))))
    return false;
  last_ = commit;
  committed_entries_ = commit.entries;
  return true;
}

}  // namespace melflow
