// A log of packed chunks in a file: one behind the other in the order of their numbers, each after
// a header with its checksum. Whenever the program ends, its chunks can be recovered, and the file
// does not depend on which thread is first.
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
  /// Of a packed chunk, in the file.
  struct Place {
    std::uint64_t at = 0, bytes = 0;
    std::uint32_t filter_mask = 0;
  };
  struct Packed {
    std::vector<std::byte> bytes;
    std::uint32_t filter_mask = 0;
  };

  /// In `file`, which must outlive it, from byte `begin` on. Chunks that wait for one before them
  /// do so in memory, `most_parked` of them, the others on disk. Threads do not wait: what is
  /// missing may be in a block that no thread has taken up yet.
  ChunkLog(const RowPartFile& file, std::uint64_t begin, std::size_t most_parked)
      : file_(file),
        most_parked_(most_parked),
        end_(begin),
        spill_(std::make_shared<RowPartFile::Spill>(file)) {}

  /// Finds the chunks, of at most `most` bytes, of an interrupted run; before all else. One that
  /// it was writing may be there in part. Throws RunError.
  void scan(std::size_t most);

  // ---- from any thread; they throw RunError

  /// Gives the chunk its place, or parks it until those before it have theirs. One that is there
  /// already is written again, behind all others.
  void add(std::int64_t index, const ChunkCodec::Packed& packed);
  [[nodiscard]] bool has(std::int64_t index) const;
  /// Nothing where there is no such chunk, or it cannot be read.
  [[nodiscard]] std::optional<Packed> load(std::int64_t index) const;
  /// The chunks from `index` on are gone; nobody may be adding one of them.
  void cut(std::int64_t index);
  /// How many, from the first on, are in the file.
  [[nodiscard]] std::int64_t safe() const;

  // ---- when nothing is added any more

  [[nodiscard]] const Place& place(std::int64_t index) const {
    return places_.at(static_cast<std::size_t>(index));
  }
  [[nodiscard]] std::uint64_t end() const { return end_; }

 private:
  struct Parked {
    Place place;                   // its size; where it was spilled to
    std::vector<std::byte> bytes;  // or, where there is room for it
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

  mutable std::mutex mutex_;     // of what follows
  std::vector<Place> places_;    // of the chunks from the first on
  std::set<std::int64_t> busy_;  // chunks that have a place, but are not in the file yet
  mutable std::condition_variable is_written_;
  std::uint64_t end_;
  std::map<std::int64_t, Parked> parked_;
  std::shared_ptr<RowPartFile::Spill> spill_;  // of parked_, who use it, too
  std::uint64_t spill_end_ = 0;
};

}  // namespace melflow
