// A table with the names that file_list reads: columns of another table under other names, and
// columns made by templates, whose cells are "" where one of their parts is empty.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stages/corpus/table_format.h"
#include "stages/corpus/table_reader.h"

namespace melflow {

class MappedTable final : public TableReader {
 public:
  /// `folder`: that of the table, "" or ending in '/'.
  MappedTable(std::unique_ptr<TableReader> table, ColumnsAre are, std::string folder);

  bool next() override;
  /// The columns of templates, then those of the table, by their names there.
  [[nodiscard]] const std::vector<std::string>& columns() const override { return names_; }
  [[nodiscard]] int column(std::string_view name) const override;
  [[nodiscard]] int find_column(std::string_view name) override;
  [[nodiscard]] const std::string& cell(int column) const override;
  using TableReader::cell;
  /// A cell made by a template has the place of its row.
  [[nodiscard]] Place place(int column) const override {
    return table_->place(column < made() ? kRow : column - made());
  }
  [[nodiscard]] std::string_view id() const override { return table_->id(); }
  [[nodiscard]] DeclaredAudio declared(bool by_parts) const override {
    return table_->declared(by_parts);
  }
  [[nodiscard]] bool has_fixed_columns() const override { return table_->has_fixed_columns(); }
  [[nodiscard]] std::vector<std::string> remarks(const std::vector<int>& used) const override;

 private:
  [[nodiscard]] int made() const { return static_cast<int>(cells_.size()); }
  template <class Find>
  [[nodiscard]] int find(std::string_view name, const Find& find_in_table) const;
  void name_columns();

  std::unique_ptr<TableReader> table_;
  ColumnsAre are_;
  std::string folder_;
  std::vector<const ColumnsAre::Column*> templates_;
  mutable std::vector<std::string> cells_;  // of the templates, as they were last asked for
  std::vector<std::string> names_;
};

}  // namespace melflow
