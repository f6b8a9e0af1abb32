// OutputIndex as two files beside the rows: an array with a record for each file that was found,
// and one JSON document with everything else.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "stages/files/part_file.h"
#include "stages/output/output_index.h"
#include "stages/output/row_part_file.h"

namespace melflow {

constexpr const char* kNpyEnding = ".npy";
/// Of "features.npy": "features.index.npy", "features.index.json".
std::string npy_index_path(const std::string& rows);
std::string npy_document_path(const std::string& rows);

/// A record of the index, in the order of docs/output-format.md.
struct NpyRecord {
  bool has_content = false;
  std::size_t targets = 0;  ///< float32 each
  std::size_t labels = 0;   ///< a byte each, where files may have several
  std::size_t path = 0;     ///< [bytes]

  [[nodiscard]] std::size_t number_bytes() const {
    return 8 + 8 + 8 + 4 + 4 + 1 + 1 + 8 + 8 + (has_content ? 8 : 0) + 4 * targets + labels;
  }
  [[nodiscard]] std::size_t bytes() const { return number_bytes() + path; }
  /// As numpy writes it.
  [[nodiscard]] std::string type() const;
};

/// Writes all of the file; throws RunError.
void write_npy_index(const PartFile& file, const OutputIndex& index);
/// Likewise. `shape` and `type` are those of the rows.
void write_npy_document(const PartFile& file, std::span<const std::uint64_t> shape, NumberType type,
                        const OutputIndex& index);

}  // namespace melflow
