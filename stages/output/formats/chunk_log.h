// A log of packed chunks in a file, in the order of their numbers, each after a header with its
// checksum. Its chunks can be recovered however the program ends, and the file does not depend on
// which thread is first.
//
// Threads: as the parts of the class say. Locks: its mutex is held for a moment, not while chunks
// are written, and takes no other; a file of chunks may hold its own meanwhile. Lifetime: the file
// has to outlive it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "stages/output/formats/chunk_codec.h"
#include "stages/output/formats/row_part_file.h"

namespace melflow {

class ChunkLog {
 public:
  /// The position of a packed chunk in the file.
  struct Place {
    std::uint64_t at = 0, bytes = 0;
    std::uint32_t filter_mask = 0;
  };
  struct Packed {
    std::vector<std::byte> bytes;
    std::uint32_t filter_mask = 0;
  };

  /// Writes to `file`, which must outlive it, from byte `begin` on. Of the chunks that wait for one
  /// before them, `most_parked` wait in memory and the others on disk. Threads do not wait: the
  /// missing chunk may be in a block that no thread has taken yet.
  ChunkLog(const RowPartFile& file, std::uint64_t begin, std::size_t most_parked)
      : file_(file),
        most_parked_(most_parked),
        end_(begin),
        spill_(std::make_shared<RowPartFile::Spill>(file)) {}

  /// Finds the chunks, of at most `most` bytes, that an interrupted run wrote; before all other
  /// calls. The one being written then may be incomplete. Throws RunError.
  void scan(std::size_t most);

  // ---- from any thread; they throw RunError

  /// Writes the chunk at its position, or parks it until those before it have theirs. A chunk that
  /// is there already is written again, behind all others.
  void add(std::int64_t index, const ChunkCodec::Packed& packed);
  [[nodiscard]] bool has(std::int64_t index) const;
  /// Reads a chunk; nothing where it does not exist or cannot be read.
  [[nodiscard]] std::optional<Packed> load(std::int64_t index) const;
  /// Removes the chunks from `index` on; no thread may be adding one of them.
  void cut(std::int64_t index);
  /// The number of chunks, from the first on, that are in the file.
  [[nodiscard]] std::int64_t safe() const;

  // ---- when nothing is added any more

  [[nodiscard]] const Place& place(std::int64_t index) const {
    return places_.at(static_cast<std::size_t>(index));
  }
  [[nodiscard]] std::uint64_t end() const { return end_; }

 private:
  struct Parked {
    Place place;                   // its size, and its position in `spill`
    std::vector<std::byte> bytes;  // empty where it was spilled
    std::shared_ptr<RowPartFile::Spill> spill;
  };
  class Writing;

  [[nodiscard]] std::int64_t next() const { return static_cast<std::int64_t>(places_.size()); }
  Place begin_place(std::int64_t index, std::size_t bytes, std::uint32_t filter_mask);
  void put(std::int64_t index, const Place& place, std::span<const std::byte> bytes) const;
  void put_parked();
  void park(std::int64_t index, const ChunkCodec::Packed& packed);
  [[nodiscard]] static std::vector<std::byte> bytes_of(const Parked& parked);

  const RowPartFile& file_;
  const std::size_t most_parked_;

  mutable std::mutex mutex_;     // guards the members below
  std::vector<Place> places_;    // of the chunks from the first on
  std::set<std::int64_t> busy_;  // chunks that have a place, but are not in the file yet
  mutable std::condition_variable is_written_;
  std::uint64_t end_;
  std::map<std::int64_t, Parked> parked_;
  std::shared_ptr<RowPartFile::Spill> spill_;  // the file of parked_, shared with its entries
  std::uint64_t spill_end_ = 0;
};

}  // namespace melflow
