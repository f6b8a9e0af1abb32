// The columns of an output's index: the values stored for every file that was found. Each is
// defined once, in index_columns.cpp; the writers and readers of both formats use that table, and a
// test compares docs/output-format.md with it.
//
// In HDF5 a column is the dataset /files/NAME; in .npy it is a field of a file's record, in the
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
  /// A column has a value per file, or an array with one for each target or label.
  enum class Per { file, target, label };

  const char* name;
  ColumnType type;
  const char* what;  ///< for the documentation, with its unit
  /// Writes the values of a file as bytes to `to`, which holds zeros; not for a text.
  std::function<void(const OutputIndex&, std::size_t file, char* to)> put;
  /// Stores in an entry the values, or the text, as they are in an output.
  std::function<void(std::string_view bytes, FeatureData::Entry& to)> set;
  Per per = Per::file;
  std::function<std::string(const OutputIndex&, std::size_t file)> text{};  ///< for a text
  /// For the documentation: which outputs have the column; "" for all.
  const char* only = "";
  std::function<bool(const OutputIndex&)>
      is_wanted{};        ///< whether this output has it; null: all do
  bool is_in_all = true;  ///< false: outputs of this format may lack it, such as earlier ones

  /// The number of values of a file in an output being written; 0 where the column is absent.
  [[nodiscard]] std::size_t values(const OutputIndex& index) const;
  /// The same for an output being read, whose names are known; 0 where it cannot have the column.
  [[nodiscard]] std::size_t values(const FeatureData& data) const;
  /// Whether the output that `data` is read from is damaged without the column.
  [[nodiscard]] bool is_needed(const FeatureData& data) const;
};

const std::vector<IndexColumn>& index_columns();

}  // namespace melflow
