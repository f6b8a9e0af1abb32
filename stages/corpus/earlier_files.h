// The files of the outputs that a run updates, and their splits, for the source.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stages/run_task.h"

namespace melflow {

/// Joins the files of several outputs, the first output's first; a file comes as often as in the
/// output that has it most often. `tell` gets a warning where two outputs have a file in different
/// splits. Empties `outputs`.
std::vector<EarlierFile> joined(std::vector<std::vector<EarlierFile>>& outputs,
                                const std::function<void(const std::string&)>& tell);

/// Maps each path of the earlier outputs to the name of its split, "" for none.
using EarlierSplits = std::unordered_map<std::string_view, std::string_view>;

}  // namespace melflow
