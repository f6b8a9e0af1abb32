// The nodes that a node stands for whose preset is a model's file.
#pragma once

#include <vector>

#include "pipeline/stage/registry.h"

namespace melflow {

/// Returns the nodes of the file's front end, with the options that `spec` has beside it; none
/// where its preset is no file. `stage`: mel or samples.
std::vector<NodeSpec> written_front_end(const NodeSpec& spec, std::string_view stage,
                                        WritingOut& writing);

}  // namespace melflow
