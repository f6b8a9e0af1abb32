// The front end of a model's own file as YAML: its nodes, with the source of each value as comment.
#pragma once

#include <string>

#include "stages/model_files/model_front_end.h"

namespace melflow {

/// The nodes as lines of a graph, the first of which takes from `from`. With `has_segment`, what
/// the class takes of a recording is a node segment.
std::string model_nodes_yaml(const ModelFrontEnd& of, std::string from, bool has_segment);
/// The name of the last node of these.
std::string last_node(const ModelFrontEnd& of);
/// What is assumed, as lines of comments.
std::string assumptions_yaml(const ModelFrontEnd& of);

}  // namespace melflow
