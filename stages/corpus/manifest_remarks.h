// Warnings about a manifest and its splits for the user; "" where there is nothing to warn about.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "stages/corpus/double_paths.h"
#include "stages/corpus/earlier_files.h"
#include "stages/corpus/file_list_options.h"
#include "stages/corpus/split_draw.h"
#include "stages/manifest.h"

namespace melflow {

/// Warnings about columns of the table `path` that are not read, since the user may rely on one.
/// `used`: the numbers of the columns that are read, -1 for one that does not exist.
std::string columns_not_read(const FileListOptions& options, const std::string& path,
                             const std::vector<std::string>& columns, const std::vector<int>& used);
/// Warnings about paths that are not UTF-8, where the first of them does not exist: file names may
/// be any bytes. `path`: that of the list.
std::string paths_not_utf8(const std::string& path, const Manifest& manifest);
/// Warnings about usable lines that name the same path, above all about those in different splits.
/// `what`: "line", or "item" of a corpus that Python gives.
std::string lines_of_one_path(const std::string& path, const char* what, const Manifest& manifest,
                              std::vector<DoublePaths::Pair> doubles);

/// The name of a file's split, or "no split" for a file in none.
std::string_view split_of(const Manifest& manifest, std::size_t file);

/// Warnings about files for which split_group finds no group. Throws RunError for such files when
/// splits are drawn with split_unmatched: error.
std::string files_without_group(const FileListOptions& options, const Manifest& manifest,
                                const SplitGroups& groups);
/// Warnings about a rule of the option that finds, for `count` files from `first` on, the name of
/// the folder of their split.
std::string names_of_splits(const std::string& option, const Manifest& manifest, std::size_t first,
                            std::size_t count);
/// Warnings about groups that have files in several splits (of splits that are given, not drawn).
std::string groups_across_splits(const Manifest& manifest, const SplitGroups& groups);
/// Warnings about splits whose names differ only in case (of splits that are given, not drawn).
std::string splits_alike(const Manifest& manifest);
/// Warnings about labels that files of another split have, but none in a split for training
/// (is_training_split).
std::string labels_not_in_training(const Manifest& manifest);
/// Warnings about files of the earlier output that are in another split now.
std::string moves_between_splits(const Manifest& manifest, const EarlierSplits& earlier);

}  // namespace melflow
