// One file of decoded audio, for many recordings: appended to by one process, read by any number.
// cache_layout.h has its bytes.
//
// The two commit records are written in turn, so that the one before stays valid until the new one is
// complete. Nothing that is committed is ever written over. What is not committed, or damaged, is
// as if it were not there: an interrupted build leaves the last commit.
//
// A writer holds flock(2) on the file. A file that is none of these is replaced by rename(2), so
// that whoever has it open keeps what it has.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stages/audio/store/audio_store.h"
#include "stages/audio/store/cache_layout.h"
#include "stages/files/mapped_range.h"
#include "stages/files/unique_fd.h"

namespace melflow {

class AudioCacheFile {
 public:
  using Extent = CacheExtent;
  using Entry = CacheEntry;

  enum class Access { read_write, read_only };
  /// Makes the file where there is none, replaces one that is no cache of this key. Throws
  /// RunError when there is nothing to read and nothing can be made.
  AudioCacheFile(std::string path, const CacheKey& key, Access access = Access::read_write);
  AudioCacheFile(const AudioCacheFile&) = delete;
  AudioCacheFile& operator=(const AudioCacheFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Of the last commit when it was opened.
  [[nodiscard]] std::size_t entries() const { return opened_.entries; }
  [[nodiscard]] bool is_writer() const { return is_writer_; }
  /// Why it is not written, or that it was replaced; "" otherwise.
  [[nodiscard]] const std::string& note() const { return note_; }

  // ---- reading: what was committed when the file was opened; from any thread

  /// The entry of a path with this stamp.
  [[nodiscard]] std::optional<Entry> find(const CacheKey& key, const FileStamp& stamp) const;
  /// Where its samples are in memory; empty when that does not lie within the file.
  [[nodiscard]] std::vector<std::span<const std::byte>> samples(const Entry& entry) const;
  /// All of them are what was stored.
  [[nodiscard]] bool verify(const Entry& entry) const;
  /// Asks the system to read them ahead.
  void prefetch(const Entry& entry) const;
  /// That many bytes of samples are not needed any more: now and then the mapping lets go of its
  /// pages, so that a large cache does not make the process large. They stay in the page cache.
  void release(std::size_t bytes) const;

  // ---- writing, where is_writer(); from any thread

  /// Appends samples; nothing when that fails, and error() says why.
  std::optional<Extent> append(std::span<const std::byte> samples);
  /// Enters a recording whose samples are appended: `entry` without its place. It is there for
  /// others after a commit, which comes by itself as entries add up. False when that failed.
  bool add(Entry entry, std::span<const Extent> extents);
  bool commit();
  [[nodiscard]] std::string error() const;

 private:
  enum class Content { empty, good, unusable };

  void open_for_writing();
  void open_for_reading();
  [[nodiscard]] bool is_at_path() const;
  void replace();
  Content load();
  [[nodiscard]] bool load_commit(const CacheCommit& commit, std::uint64_t file_size);
  [[nodiscard]] bool commit(const std::vector<Entry>& fresh);
  [[nodiscard]] bool write_all(std::uint64_t offset, std::span<const std::byte> bytes);
  void fail(int error);
  [[nodiscard]] std::span<const std::byte> range(std::uint64_t offset, std::uint64_t bytes) const;

  std::string path_;
  CacheKey key_;
  UniqueFd fd_;
  bool is_writer_ = false;
  std::string note_;

  MappedRange map_;  // the committed part when it was opened
  CacheCommit opened_;
  mutable std::atomic<std::size_t> released_{0};

  std::atomic<std::uint64_t> end_{0};
  std::atomic<int> error_{0};
  std::mutex pending_mutex_;
  std::vector<Entry> pending_;
  std::mutex commit_mutex_;
  std::atomic<std::uint64_t> committed_entries_{0};
  CacheCommit last_;  // of the last commit
};

}  // namespace melflow
