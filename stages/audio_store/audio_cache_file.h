// One file of decoded audio, for many recordings: appended to by one process, read by any number.
//
//   header   4096 bytes: magic, version, byte order, contract; at 512 and 1024 the two slots
//   samples  of every recording, as native int16 or float32, in one extent or several
//   index    an open-addressing table of entries by path, written anew with every commit
//
// A slot says where an index is and how far the file is committed; it has a checksum, and so has
// the index it points to. Commits write the slots in turn, so that the one before stays valid until
// the new one is complete. Nothing that is committed is ever written over. What is not committed,
// or damaged, is as if it were not there: an interrupted build leaves the last commit.
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

#include "stages/audio_store/audio_store.h"
#include "stages/raii/unique_fd.h"

namespace melflow {

/// 128-bit hash of a path, or of the settings behind the samples.
struct CacheKey {
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const CacheKey&, const CacheKey&) = default;
};
CacheKey cache_key(std::string_view text);

class AudioCacheFile {
 public:
  struct Extent {
    std::uint64_t offset = 0, bytes = 0;
  };
  /// A recording, as it is stored in the index.
  struct Entry {
    CacheKey key;
    FileStamp stamp;
    std::uint64_t place =
        0;                   ///< of the samples, or of the table of extents where there are several
    std::int64_t count = 0;  ///< samples; 0 marks a free place of the table
    std::int64_t file_frames = 0;
    std::uint64_t checksum = 0;  ///< XXH3 of all samples
    std::int32_t sample_rate = 0, file_rate = 0;
    std::uint32_t extents = 0;
    std::uint32_t type = 0;  ///< SampleType

    [[nodiscard]] std::uint64_t bytes() const {
      return static_cast<std::uint64_t>(count) * size_of(static_cast<SampleType>(type));
    }
  };

  enum class Access { read_write, read_only };
  /// Makes the file where there is none, replaces one that is no cache of this contract. Throws
  /// RunError when there is nothing to read and nothing can be made.
  AudioCacheFile(std::string path, const CacheKey& contract, Access access = Access::read_write);
  AudioCacheFile(const AudioCacheFile&) = delete;
  AudioCacheFile& operator=(const AudioCacheFile&) = delete;
  ~AudioCacheFile();

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
  struct Slot {
    std::uint64_t sequence = 0;  // 0: never written
    std::uint64_t index_offset = 0;
    std::uint64_t capacity = 0;  // places of the table, a power of two
    std::uint64_t entries = 0;
    std::uint64_t end = 0;  // of what is committed [bytes]
    std::uint64_t index_checksum = 0;
    std::uint64_t checksum = 0;  // of the members before
  };
  enum class Content { empty, good, unusable };

  void open_for_writing();
  void open_for_reading();
  [[nodiscard]] bool is_at_path() const;
  void replace();
  [[nodiscard]] bool write_header();
  Content load();
  [[nodiscard]] bool load_slot(const Slot& slot, std::uint64_t file_size);
  [[nodiscard]] bool commit(const std::vector<Entry>& fresh);
  [[nodiscard]] bool write_all(std::uint64_t offset, std::span<const std::byte> bytes);
  void fail(int error);
  [[nodiscard]] std::span<const std::byte> range(std::uint64_t offset, std::uint64_t bytes) const;
  static std::uint64_t slot_checksum(const Slot& slot);

  std::string path_;
  CacheKey contract_;
  UniqueFd fd_;
  bool is_writer_ = false;
  std::string note_;

  std::byte* map_ = nullptr;  // the committed part when it was opened
  std::size_t mapped_ = 0;
  Slot opened_;
  mutable std::atomic<std::size_t> released_{0};

  std::atomic<std::uint64_t> end_{0};
  std::atomic<int> error_{0};
  std::mutex pending_mutex_;
  std::vector<Entry> pending_;
  std::mutex commit_mutex_;
  std::atomic<std::uint64_t> committed_entries_{0};
  Slot last_;  // of the last commit
};

}  // namespace melflow
