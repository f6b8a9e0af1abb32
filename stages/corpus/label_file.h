// Reads labels, targets and texts of listed files from a table beside them (label_file).
#pragma once

#include <functional>
#include <string>

#include "stages/corpus/file_list_options.h"
#include "stages/corpus/table_columns.h"
#include "stages/manifest.h"

namespace melflow {

/// Passes warnings to `warn`. A row that cannot be used fails the files that it names. Throws
/// RunError when the table cannot be read, lacks a column, or has a line that does not tell which
/// files it is for. `renamed`: what a label is called in the output.
void read_label_file(const FileListOptions& options, Manifest& manifest,
                     const std::function<void(std::string)>& warn,
                     const LabelColumns::Renamed& renamed);
/// Checks the table without a list of files: warns of the rows that will fail the files which they
/// name.
void check_label_file(const FileListOptions& options, const std::function<void(std::string)>& warn);

}  // namespace melflow
