// What the name of a split or column may be, wherever it comes from: options, folders, tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace melflow {

/// "", or why not: it becomes the name of a group in the output and part of file names.
std::string split_name_problem(std::string_view name);

/// Likewise of a column of text: it becomes the name of a dataset.
std::string column_name_problem(std::string_view name);

/// Training, validation, test, by whatever these are called; then others, as they stand.
void sort_by_purpose(std::vector<std::string>& names);

}  // namespace melflow
