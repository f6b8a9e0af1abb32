#include "stages/corpus/mapped_table.h"

#include <algorithm>

namespace melflow {
namespace {

// Whether the source is a template, and not merely another column's name.
bool is_template(const ColumnsAre::Source& source) {
  return source.size() != 3 || !source[0].empty() || !source[2].empty() ||
         source[1] == ColumnsAre::kFolder;
}

}  // namespace

MappedTable::MappedTable(std::unique_ptr<TableReader> table, ColumnsAre are, std::string folder)
    : table_(std::move(table)), are_(std::move(are)), folder_(std::move(folder)) {
  for (const ColumnsAre::Column& column : are_.list)
    if (is_template(column.source)) templates_.push_back(&column);
  cells_.resize(templates_.size());
  name_columns();
}

void MappedTable::name_columns() {
  if (names_.size() == cells_.size() + table_->columns().size() && !names_.empty()) return;
  names_.clear();
  for (const ColumnsAre::Column* const column : templates_) names_.push_back(column->name);
  names_.insert(names_.end(), table_->columns().begin(), table_->columns().end());
}

template <class Find>
int MappedTable::find(std::string_view name, const Find& find_in_table) const {
  const auto in_table = [&](std::string_view n) {
    const int c = find_in_table(n);
    return c < 0 ? c : c + made();
  };
  const ColumnsAre::Column* const column = are_.find(name);
  if (column == nullptr) return in_table(name);
  const auto made = std::find(templates_.begin(), templates_.end(), column);
  if (made == templates_.end()) return in_table(column->source[1]);
  const std::vector<std::string> parts = are_.sources(name);
  const bool is_whole = std::all_of(parts.begin(), parts.end(),
                                    [&](const std::string& part) { return in_table(part) >= 0; });
  return is_whole ? static_cast<int>(made - templates_.begin()) : -1;
}

int MappedTable::column(std::string_view name) const {
  return find(name, [this](std::string_view n) { return table_->column(n); });
}

int MappedTable::find_column(std::string_view name) {
  const int column = find(name, [this](std::string_view n) { return table_->find_column(n); });
  name_columns();
  return column;
}

bool MappedTable::next() {
  try {
    if (!table_->next()) return false;
  } catch (const BadLine&) {
    name_columns();
    throw;
  }
  name_columns();
  return true;
}

const std::string& MappedTable::cell(int column) const {
  if (column >= made()) return table_->cell(column - made());
  const auto t = static_cast<std::size_t>(column);
  const ColumnsAre::Source& source = templates_[t]->source;
  std::string& cell = cells_[t];
  cell = source.front();
  for (std::size_t i = 1; i < source.size(); i += 2) {
    if (source[i] == ColumnsAre::kFolder) {
      cell += folder_;
    } else if (const int c = table_->column(source[i]); c < 0 || table_->cell(c).empty()) {
      cell.clear();
      break;
    } else {
      cell += table_->cell(c);
    }
    cell += source[i + 1];
  }
  return cell;
}

std::vector<std::string> MappedTable::remarks(const std::vector<int>& used) const {
  std::vector<int> of_table;
  for (const int c : used)
    if (c >= made()) of_table.push_back(c - made());
  for (const ColumnsAre::Column* const column : templates_)
    for (const std::string& part : are_.sources(column->name))
      of_table.push_back(table_->column(part));
  return table_->remarks(of_table);
}

}  // namespace melflow
