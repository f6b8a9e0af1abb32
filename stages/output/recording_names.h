// Names of recordings as keys of archives, by the sinks and in exports.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/stage/run_context.h"

namespace melflow {

/// Returns a unique name for each path: without its ending if no other path is the same then, and
/// with -1, -2, ... if two still are. Bytes that end a key in a list, a tar or a URL become %XX; so
/// do dots of the file's name.
std::vector<std::string> recording_names(const std::vector<std::string>& paths);
/// The names of the recordings of a run.
std::vector<std::string> recording_names(const RunContext& run);
/// Returns the text with bytes that names cannot have as %XX.
std::string as_recording_name(std::string_view text);
/// Checks that the names of the run's recordings are unique and not empty, and that `is_one` holds
/// for each. `option`: the option that gave them, for the message. Throws RunError.
void check_names(const RunContext& run, const std::vector<std::string>& names,
                 const std::string& option, const std::function<bool(const std::string&)>& is_one);

}  // namespace melflow
