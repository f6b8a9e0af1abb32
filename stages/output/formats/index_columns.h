// The columns of an output's index: what it says of every file that was found. Each is said once,
// in index_columns.cpp. The writers and readers of both formats go by that, and a test compares
// docs/output-format.md with it.
//
// In HDF5 a column is the dataset /files/NAME, in .npy a field of the record of a file, in the
// order of the columns here.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stages/output/formats/column_type.h"
#include "stages/output/formats/feature_data.h"
#include "stages/output/formats/output_index.h"

namespace melflow {

struct IndexColumn {
  /// What a file has a value for: itself, or each of these names (an array in the index).
  enum class Per { file, target, label };

  const char* name;
  ColumnType type;
  const char* what;  ///< for the documentation, with its unit
  /// Puts the values of a file there, as bytes, where zeros are; not of a text.
  std::function<void(const OutputIndex&, std::size_t file, char* to)> put;
  /// Takes them, or a text, as they are in an output.
  std::function<void(std::string_view bytes, FeatureData::Entry& to)> set;
  Per per = Per::file;
  std::function<std::string(const OutputIndex&, std::size_t file)> text{};  ///< of a text
  /// For the documentation: where the column is written at all; "" for everywhere.
  const char* only = "";
  bool (*is_wanted)(const OutputIndex&) = nullptr;  ///< that, in an output
  bool is_in_all = true;  ///< false: outputs of this format may lack it, such as earlier ones

  /// Values of a file that is written; 0 where the column is not there.
  [[nodiscard]] std::size_t values(const OutputIndex& index) const;
  /// Likewise of one that was read, whose names are known already; 0 where it cannot be there.
  [[nodiscard]] std::size_t values(const FeatureData& data) const;
  /// What `data` is read from is damaged without the column.
  [[nodiscard]] bool is_needed(const FeatureData& data) const;
};

const std::vector<IndexColumn>& index_columns();

}  // namespace melflow
