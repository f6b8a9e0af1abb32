// The archives that the option root of file_list names.
#pragma once

#include <string>
#include <vector>

namespace melflow {

/// Whether a root names archives: it ends as one (is_archive_name), and is no folder.
bool names_archives(const std::string& root);
/// The folder to which paths are relative: the archive itself if the root names one, and with a
/// pattern the folder of the archives.
std::string archive_base(const std::string& root);
/// Returns the archives, relative to archive_base(root), in their order; "" if the root is a single
/// archive: "train-{000..128}.tar" stands for 129 files, "{a,b}.tar" for two, and * and ? for any
/// that are there, by name. Throws RunError where a pattern is invalid or finds nothing.
std::vector<std::string> archives_of(const std::string& root);

}  // namespace melflow
