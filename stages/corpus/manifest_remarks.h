// Warnings about a manifest for the user; "" where there is nothing to warn about.
#pragma once

#include <string>
#include <vector>

#include "stages/corpus/double_paths.h"
#include "stages/corpus/file_list_options.h"
#include "stages/manifest.h"

namespace melflow {

/// Warnings about columns of a table that are not read, since somebody may rely on one. `used`: the
/// numbers of those that are, -1 for one that there is not.
std::string columns_not_read(const FileListOptions& options,
                             const std::vector<std::string>& columns, const std::vector<int>& used);
/// Warnings about paths that are not UTF-8, where the first is not there: names of files may be any bytes.
/// `path`: of the list.
std::string paths_not_utf8(const std::string& path, const Manifest& manifest);
/// Warnings about lines that name one path, and on those of them that are in different splits.
std::string lines_of_one_path(const std::string& path, const Manifest& manifest,
                              const std::vector<DoublePaths::Pair>& doubles);

}  // namespace melflow
