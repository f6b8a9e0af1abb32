// The layout of a file with the decoded audio of many recordings:
//
//   header   4096 bytes: magic, version, byte order, key; at 512 and 1024 the two commit records
//   samples  of every recording, as native int16 or float32, in one extent or several
//   index    a hash table (open addressing) of entries by path, rewritten with every commit
//
// A commit record has the position of an index and the end of the committed part. The record and
// its index have checksums.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stages/items.h"
#include "stages/manifest.h"

namespace melflow {

/// A 128-bit hash of a path, or of the settings that determine the samples.
struct CacheKey {
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const CacheKey&, const CacheKey&) = default;
};
CacheKey cache_key(std::string_view text);

/// The position of samples in the file [bytes].
struct CacheExtent {
  std::uint64_t offset = 0, bytes = 0;
};

/// A recording's entry in the index, as stored.
struct CacheEntry {
  CacheKey key;
  FileStamp stamp;
  /// Position of the samples, or of the table of extents if there are several.
  std::uint64_t place = 0;
  std::int64_t count = 0;  ///< samples; 0 marks a free slot of the table
  std::int64_t file_frames = 0;
  std::uint64_t checksum = 0;  ///< XXH3 of all samples
  std::int32_t sample_rate = 0, file_rate = 0;
  std::uint32_t extents = 0;
  std::uint16_t type = 0;      ///< SampleType
  std::uint16_t channels = 0;  ///< of the file; 0: not known

  [[nodiscard]] std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(count) * size_of(static_cast<SampleType>(type));
  }
  /// Whether the numbers are plausible, so that dividing by them and adding them is safe.
  [[nodiscard]] bool is_possible() const;
};

/// The slot of a key in a table of `capacity` entries, a power of two, or the free slot where it
/// would go; any slot if a damaged table has no free one.
std::size_t cache_place_of(const CacheEntry* table, std::uint64_t capacity, const CacheKey& key);

struct CacheCommit {
  std::uint64_t sequence = 0;  ///< 0: never written
  std::uint64_t index_offset = 0;
  std::uint64_t capacity = 0;  ///< slots of the table, a power of two
  std::uint64_t entries = 0;
  std::uint64_t end = 0;  ///< of the committed part [bytes]
  std::uint64_t index_checksum = 0;
  std::uint64_t checksum = 0;  ///< of the members above

  void sign();
  [[nodiscard]] bool was_never_written() const { return sequence == 0 && checksum == 0; }
  /// Whether the record is complete and its index lies within a file of `file_size` bytes.
  [[nodiscard]] bool is_good(std::uint64_t file_size) const;
};

constexpr std::size_t kCachePage = 4096;  // size of the header; an index begins at a multiple of it
constexpr std::array<std::size_t, 2> kCacheCommitPlace{512, 1024};

using CachePage = std::array<std::byte, kCachePage>;
/// The header of an empty file.
CachePage cache_header(const CacheKey& key);
/// Whether the page is the header of a file of this version with this key.
bool is_cache_header(const CachePage& page, const CacheKey& key);
/// The commit records of a header, the later one first.
std::array<CacheCommit, 2> cache_commits(const CachePage& page);

}  // namespace melflow
