// The HDF5 output with rows in chunks, each compressed separately by the thread that completes it.
//
// In:  rows, nearly in order and from many threads.
// Out: `<target>.part`, from byte kDataOffset on a ChunkLog of chunks of ChunkSettings::rows rows,
//      shuffled and deflated as HDF5's own filters do it, in the order of the rows. At the end HDF5
//      makes a file around them, whose chunks are where they are.
//
// So the chunks in the log survive whatever happens to the program, HDF5 writes no row, and the
// file does not depend on who packs when. A chunk is kept in memory from its first row to its last.
// Rows come nearly in order, so few chunks are open at a time.
//
// Threads: write(), roll_back(), hash() and safe_rows() from any, as for RowPartFile; reading,
// moving rows and completing the file from one at a time, when all rows are written. Locks: its
// mutex is held for a moment to find a chunk, not while one is packed or written; under it that of
// the log is taken. Errors: RunError, also from the write that completes a chunk.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "pipeline/base/memory.h"
#include "pipeline/base/scratch_pool.h"
#include "stages/output/formats/chunk_codec.h"
#include "stages/output/formats/chunk_log.h"
#include "stages/output/formats/row_file.h"

namespace melflow {

/// The cost of packing, from a sample of the chunks: each is packed at the configured level and,
/// where that is above level 1, at level 1, too.
class PackingCost {
 public:
  struct Estimate {
    double seconds = 0;  ///< processor time of all chunks
    double size = 0;     ///< of a packed chunk, as a share of its rows
  };
  /// Returns the cost as configured and at level 1; nothing before the first chunk.
  [[nodiscard]] std::optional<std::pair<Estimate, Estimate>> estimates() const;
  /// Calls codec.pack(), and measures a sample of the calls. From any thread.
  ChunkCodec::Packed pack(const ChunkCodec& codec, std::span<const std::byte> chunk,
                          ChunkCodec::Scratch& scratch);

 private:
  struct Sum {
    std::int64_t nanoseconds = 0;
    std::size_t bytes = 0;
  };
  std::atomic<std::int64_t> chunks_ = 0;
  mutable std::mutex mutex_;  // guards the sample below
  std::int64_t sampled_ = 0;
  std::size_t bytes_ = 0;  // before packing
  Sum packed_, at_level_1_;
  ChunkCodec::Scratch scratch_;  // for level 1
};

/// Memory for open chunks and for packing them; the files of a sink share it.
struct ChunkSpace {
  /// The most memory [bytes] that `threads` threads use at once to write `files` files.
  static std::size_t most(std::size_t chunk_bytes, int level, int threads, std::size_t files);

  BufferPool chunks{std::numeric_limits<std::size_t>::max()};
  ScratchPool<ChunkCodec::Scratch> scratch;
  PackingCost cost;
};

struct ChunkSettings {
  std::int64_t rows = 0;  ///< of a chunk
  int level = 0;          ///< of deflate, 0: none
  bool shuffle = true;
  std::shared_ptr<ChunkSpace> space = std::make_shared<ChunkSpace>();
};

class ChunkedRowFile final : public RowFile {
 public:
  /// `name`: of the dataset of rows; `row_shape`: the axes of a row. Throws RunError as RowFile
  /// does.
  ChunkedRowFile(const std::string& target, std::string name, NumberType type,
                 std::vector<hsize_t> row_shape, const Opening& opening,
                 const ChunkSettings& settings);

  using RowFile::write;
  void write(std::span<const RowRange> ranges) override;
  void write(std::int64_t row, std::int64_t count, const Elsewhere& from) override;
  [[nodiscard]] bool is_serial(NumberType) const override { return false; }  // packing takes longer
  void roll_back(std::int64_t row) override;
  void read(std::int64_t row, std::int64_t count, float* values) override;
  void move_rows(std::int64_t from, std::int64_t to, std::int64_t count) override;
  [[nodiscard]] std::int64_t safe_rows() const override;
  void resume_at(std::int64_t rows) override;
  [[nodiscard]] std::optional<std::uint64_t> hash(std::int64_t row,
                                                  std::int64_t count) const override;
  void make_hdf5(Shape shape, const Describe& describe, const Check& check = {}) override;

  /// The number of packed chunks of this size that wait in memory for one before them.
  static std::size_t most_parked(std::size_t chunk_bytes) {
    constexpr std::size_t kBytes = 4 << 20;
    return std::clamp<std::size_t>(kBytes / chunk_bytes, 1, 4);
  }

 private:
  struct Chunk {
    Chunk(BufferPool& pool, std::int64_t rows, std::size_t row_bytes)
        : buffer(pool.lease(static_cast<std::size_t>(rows) * row_bytes)),
          has(static_cast<std::size_t>(rows), false) {}
    void mark(std::int64_t first, std::int64_t end, bool is_there);
    [[nodiscard]] std::span<std::byte> bytes() const { return {buffer.data(), buffer.size()}; }

    Buffer buffer;
    std::vector<bool> has;    // rows that are there; blocks of a file may overtake each other
    std::int64_t filled = 0;  // number of rows that are there
  };
  struct Packing;

  [[nodiscard]] std::shared_ptr<Chunk> new_chunk() const;
  void write_range(RowRange range);
  [[nodiscard]] std::size_t chunk_bytes() const {
    return static_cast<std::size_t>(settings_.rows) * row_bytes();
  }
  [[nodiscard]] std::int64_t chunk_of(std::int64_t row) const { return row / settings_.rows; }
  void copy_rows(const RowRange& range, std::byte* to) const;
  void put_chunk(std::int64_t index, const Chunk& chunk);
  [[nodiscard]] bool load(std::int64_t index, std::span<std::byte> to) const;
  void load_chunk(std::int64_t index, Chunk& chunk) const;
  void reopen(std::int64_t index, std::int64_t rows);
  void flush_open();
  [[nodiscard]] Hid make_rows(hid_t file, Shape shape) const;
  [[nodiscard]] std::vector<hsize_t> chunk_offset(std::int64_t index) const;
  void check_chunks(hid_t file, Shape shape) const;
  void link_chunks(Hdf5Descriptor& to, hid_t rows, Shape shape) const;

  ChunkSettings settings_;
  std::vector<hsize_t> row_shape_;
  ChunkCodec codec_;

  mutable std::mutex mutex_;  // guards the members below
  std::map<std::int64_t, std::shared_ptr<Chunk>> open_;
  std::set<std::int64_t> packing_;  // complete chunks that the log does not have yet
  mutable std::condition_variable packed_;
  ChunkLog log_;
};

}  // namespace melflow
