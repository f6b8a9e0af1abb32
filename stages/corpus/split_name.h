// Rules for the names of splits and columns, which come from options, folders or tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace melflow {

/// Returns "" where a split may have that name, else the reason why not: the name becomes that of a
/// group in the output, and part of file names.
std::string split_name_problem(std::string_view name);

/// Returns the same for a column of text, whose name becomes that of a dataset.
std::string column_name_problem(std::string_view name);

/// Whether a split of that name is for training: its first word is train, training, tr or trn (a
/// word is letters in upper or lower case), as in train-clean-100 or TRAIN_2, and no later word is
/// one for validation or test, as in train_dev.
bool is_training_split(std::string_view name);

/// Whether the name says that a split is for training, validation or test.
bool is_known_split(std::string_view name);

/// Sorts names for training first, then those for validation and test, then all others in their
/// present order.
void sort_by_purpose(std::vector<std::string>& names);

}  // namespace melflow
