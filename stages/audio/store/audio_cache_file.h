// A file with the decoded audio of many recordings. One process appends to it, any number read it;
// cache_layout.h describes its bytes.
//
// The two commit records are written in turn, so the previous one stays valid until the new one is
// complete. Committed data is never overwritten. Damaged or uncommitted data is ignored: after an
// interrupted build the last commit remains.
//
// A writer holds flock(2) on the file. A file that is not such a cache is replaced by rename(2), so
// that processes which have it open can continue to read it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stages/audio/store/cache_layout.h"
#include "stages/audio/store/stored_audio.h"
#include "stages/files/mapped_range.h"
#include "stages/files/unique_fd.h"

namespace melflow {

class AudioCacheFile {
 public:
  using Extent = CacheExtent;
  using Entry = CacheEntry;

  enum class Access { read_write, read_only };
  /// Opens the file; creates it if there is none, and replaces one that is not a cache with this
  /// key. Throws RunError if there is nothing to read and nothing can be created.
  AudioCacheFile(std::string path, const CacheKey& key, Access access = Access::read_write);
  AudioCacheFile(const AudioCacheFile&) = delete;
  AudioCacheFile& operator=(const AudioCacheFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The number of recordings in the last commit when the file was opened.
  [[nodiscard]] std::size_t entries() const { return opened_.entries; }
  [[nodiscard]] bool is_writer() const { return is_writer_; }
  /// Why the file is not written, or a note that it was replaced; "" otherwise.
  [[nodiscard]] const std::string& note() const { return note_; }

  // ---- Reading what was committed when the file was opened; from any thread

  /// Returns the entry with this key whose file had this stamp; nullopt if there is none.
  [[nodiscard]] std::optional<Entry> find(const CacheKey& key, const FileStamp& stamp) const;
  /// Returns an entry's samples, mapped into memory; empty if they do not lie within the file.
  [[nodiscard]] std::vector<std::span<const std::byte>> samples(const Entry& entry) const;
  /// Whether the samples of an entry have the checksum with which they were stored.
  [[nodiscard]] bool verify(const Entry& entry) const;
  /// Asks the system to prefetch the samples of an entry.
  void prefetch(const Entry& entry) const;
  /// Notes that `bytes` bytes of samples are no longer needed. From time to time the mapping
  /// releases its pages, so that a large cache does not make the process large; they stay in the
  /// page cache.
  void release(std::size_t bytes) const;

  // ---- Writing, if is_writer(); from any thread

  /// Appends samples and returns their position; nullopt if that fails (see error()).
  std::optional<Extent> append(std::span<const std::byte> samples);
  /// Adds a recording whose samples were appended to `extents`; `entry.place` is not set yet.
  /// Others see it after the next commit, which happens by itself after some entries. Returns false
  /// on failure.
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

  MappedRange map_;  // the part that was committed at opening
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
