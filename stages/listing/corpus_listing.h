// Makes the index of a corpus from what the user says of it: lists the files, looks up their labels
// and targets, and puts them into splits.
#pragma once

#include <functional>
#include <string>

#include "stages/listing/file_list_options.h"
#include "stages/listing/manifest.h"

namespace melflow {

/// `warn` gets remarks on the corpus as a whole. Throws RunError when there is no file, or a table
/// cannot be read or says what cannot be.
Manifest list_corpus(const FileListOptions& options, const std::function<void(std::string)>& warn);

}  // namespace melflow
