// Writes an OutputIndex as two files beside rows of any format but HDF5: an array with a record for
// each file of the run, and a JSON document with everything else.
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
/// The paths of the index for rows at "features.npy" or "features.ark": "features.index.npy" and
/// "features.index.json". `rows` ends in four characters like these, whichever they are.
std::string npy_index_path(const std::string& rows);
std::string npy_document_path(const std::string& rows);

/// The two files of the index beside rows at `rows`, as npy_index_path and npy_document_path name
/// them. `stage`, `existing`: as for PartFile, which may throw.
struct NpyIndexFiles {
  NpyIndexFiles(const std::string& rows, const char* stage, Existing existing);
  PartFile index, document;
  /// Writes both. `shape` and `type` are those of the rows. Throws RunError.
  void write(std::span<const std::uint64_t> shape, NumberType type, const OutputIndex& x) const;
};

/// A record of the index: the values of all columns for one file, side by side.
class NpyRecord {
 public:
  struct Field {
    const IndexColumn* column;
    std::size_t values;  ///< number of values; for a text, bytes, filled up with zeros
    [[nodiscard]] std::size_t bytes() const { return values * size_of(column->type); }
  };

  void add(const IndexColumn& column, std::size_t values) { fields_.push_back({&column, values}); }
  /// Lengthens the last field, a text, so that the record's size is a multiple of eight bytes.
  void pad();
  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }
  [[nodiscard]] std::size_t bytes() const;
  /// The record's type as numpy writes it.
  [[nodiscard]] std::string type() const;

 private:
  std::vector<Field> fields_;
};

}  // namespace melflow
