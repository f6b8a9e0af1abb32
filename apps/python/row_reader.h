// Reads rows of an output by number, from many threads: mapped where they lie in one piece, else
// from their chunks. Where they are is told by who has opened the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "pipeline/memory.h"
#include "pipeline/number_type.h"
#include "stages/files/unique_fd.h"
#include "stages/output/formats/chunk_codec.h"

namespace melflow {

class RowReader {
 public:
  struct Chunk {
    std::uint64_t at = 0, bytes = 0;
    std::uint32_t filter_mask = 0;
  };
  struct Layout {
    std::string path;
    NumberType type = NumberType::float32;
    std::vector<std::size_t> row_shape;
    std::uint64_t rows = 0;
    std::uint64_t at = 0;          ///< of the first row in the file; without chunks
    std::uint64_t chunk_rows = 0;  ///< 0: not in chunks
    bool is_shuffled = false, is_deflated = false;
    std::vector<Chunk> chunks;
  };
  /// Throws RunError where the file cannot be read, or is shorter than the layout says.
  explicit RowReader(Layout layout);
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  [[nodiscard]] const Layout& layout() const { return layout_; }
  /// Of batches: what an epoch had is used again by the next.
  [[nodiscard]] BufferPool& pool() const { return pool_; }
  [[nodiscard]] std::size_t values_per_row() const { return values_; }
  [[nodiscard]] std::size_t row_bytes() const { return values_ * size_of(layout_.type); }

  /// What a thread keeps from one call to the next: the chunk that it read last.
  struct Scratch {
    ChunkCodec::Scratch codec;
    std::vector<std::byte> packed, chunk;
    std::uint64_t has = ~std::uint64_t{0};
  };
  /// Copies rows [first, first + count) to `to`. Throws RunError.
  void read(std::uint64_t first, std::uint64_t count, std::byte* to, Scratch& scratch) const;

 private:
  void load(std::uint64_t chunk, Scratch& scratch) const;

  Layout layout_;
  std::size_t values_ = 1;
  mutable BufferPool pool_{std::numeric_limits<std::size_t>::max()};
  UniqueFd fd_;
  ChunkCodec codec_;
  std::uint64_t map_bytes_ = 0;
  const std::byte* map_ = nullptr;
};

}  // namespace melflow
