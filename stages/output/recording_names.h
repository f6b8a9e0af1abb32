// Names of recordings as keys of archives: melflow/exports.py makes the same.
#pragma once

#include <string>
#include <vector>

namespace melflow {

/// A name of its own for each path: without its ending, where no other path is alike then, and with
/// -1, -2, ... where two still are. Bytes that end a key in a list, a tar or a URL are %XX, dots of
/// the file's name among them.
std::vector<std::string> recording_names(const std::vector<std::string>& paths);

}  // namespace melflow
