// Rows of an output: mapped where they lie in one piece, else from their chunks. Where they are is
// told by who has opened the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/python/row_reader.h"
#include "stages/files/unique_fd.h"
#include "stages/output/formats/chunk_codec.h"

namespace melflow {

class FileRows final : public RowReader {
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
  explicit FileRows(Layout layout);
  ~FileRows() override;

  [[nodiscard]] std::unique_ptr<Scratch> scratch() const override;
  void read(const Range& rows, std::byte* to, Scratch& scratch) const override;
  [[nodiscard]] bool is_ordered() const override { return layout_.chunk_rows > 0; }

 private:
  struct Unpacked;
  void load(std::uint64_t chunk, Unpacked& scratch) const;

  Layout layout_;
  UniqueFd fd_;
  ChunkCodec codec_;
  std::uint64_t map_bytes_ = 0;
  const std::byte* map_ = nullptr;
};

}  // namespace melflow
