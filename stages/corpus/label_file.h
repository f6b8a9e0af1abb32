// Reads labels, targets and texts of files that were listed from a table beside them (label_file).
#pragma once

#include <functional>
#include <string>

#include "stages/corpus/file_list_options.h"
#include "stages/manifest.h"

namespace melflow {

/// Passes warnings to `warn`. A row that cannot be used fails the files that it names. Throws
/// RunError when the table cannot be read, lacks a column, or has a line of which cannot be told
/// what it names.
void read_label_file(const FileListOptions& options, Manifest& manifest,
                     const std::function<void(std::string)>& warn);
/// The same where no file is listed: passes on what of the table will be wrong for the files that
/// it names.
void check_label_file(const FileListOptions& options, const std::function<void(std::string)>& warn);

}  // namespace melflow
