// Names of recordings as keys of archives, by the sinks and in exports.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/stage/run_context.h"

namespace melflow {

/// A name of its own for each path: without its ending, where no other path is alike then, and with
/// -1, -2, ... where two still are. Bytes that end a key in a list, a tar or a URL are %XX, dots of
/// the file's name among them.
std::vector<std::string> recording_names(const std::vector<std::string>& paths);
/// The names of the recordings of a run.
std::vector<std::string> recording_names(const RunContext& run);
/// A text with the bytes as %XX that names do not have.
std::string as_recording_name(std::string_view text);
/// Checks that names of the run's recordings are given once each, none is empty, and `is_one` holds
/// for each. `option`: which one gave them, for the message. Throws RunError.
void check_names(const RunContext& run, const std::vector<std::string>& names,
                 const std::string& option, const std::function<bool(const std::string&)>& is_one);

}  // namespace melflow
