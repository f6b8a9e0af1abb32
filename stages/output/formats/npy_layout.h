// OutputIndex as two files beside the rows: an array with a record for each file that was found,
// and one JSON document with everything else.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stages/files/part_file.h"
#include "stages/output/formats/index_columns.h"
#include "stages/output/formats/output_index.h"
#include "stages/output/formats/row_part_file.h"

namespace melflow {

constexpr const char* kNpyEnding = ".npy";
/// Of "features.npy": "features.index.npy", "features.index.json".
std::string npy_index_path(const std::string& rows);
std::string npy_document_path(const std::string& rows);

/// A record of the index: the columns of a file, side by side.
class NpyRecord {
 public:
  struct Field {
    const IndexColumn* column;
    std::size_t values;  ///< of a text its bytes, which zeros follow
    [[nodiscard]] std::size_t bytes() const { return values * size_of(column->type); }
  };

  void add(const IndexColumn& column, std::size_t values) { fields_.push_back({&column, values}); }
  /// Makes the last field, a text, so much longer that the record is a multiple of eight bytes.
  void pad();
  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }
  [[nodiscard]] std::size_t bytes() const;
  /// As numpy writes it.
  [[nodiscard]] std::string type() const;

 private:
  std::vector<Field> fields_;
};

/// Writes all of the file; throws RunError.
void write_npy_index(const PartFile& file, const OutputIndex& index);
/// Likewise. `shape` and `type` are those of the rows.
void write_npy_document(const PartFile& file, std::span<const std::uint64_t> shape, NumberType type,
                        const OutputIndex& index);

}  // namespace melflow
