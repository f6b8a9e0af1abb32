// Rules for the names of splits and columns, which come from options, folders or tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace melflow {

/// "" where a split may have that name, else the reason why not: the name becomes that of a group
/// in the output, and part of file names.
std::string split_name_problem(std::string_view name);

/// Likewise for the name of a column of text, which becomes the name of a dataset.
std::string column_name_problem(std::string_view name);

/// Whether a split of that name trains a model: its first word is train, training, tr or trn (a
/// word is letters in upper or lower case), as in train-clean-100 or TRAIN_2, and no further word
/// is one for validation or test, as in train_dev.
bool is_training_split(std::string_view name);

/// Puts names for training first, then those for validation and test, then all others in the order
/// they had.
void sort_by_purpose(std::vector<std::string>& names);

}  // namespace melflow
