// Finds the stages that are missing between two nodes, and inserts those that need no options:
// disk_read, decode, segment and batch between file_list and mel.
#pragma once

#include <string>
#include <vector>

#include "pipeline/plan/plan.h"
#include "pipeline/stage/registry.h"

namespace melflow {

/// Whether a node of that name, without `stage` and `from`, holds options for an inserted node.
bool is_put_in(const Registry& registry, const std::string& name);

/// Returns the chain of stages from one port to another with the fewest that have to be written, in
/// the order of the data; empty if there is none. Of several, the one with more stages that
/// with_missing_nodes() inserts, which is the usual one. `of_put_in`: of these stages alone.
std::vector<const StageInfo*> stages_between(const Registry& registry, const PortType& from,
                                             const PortType& to, bool of_put_in);

/// Returns the graph with the nodes that are missing, of stages registered for this purpose
/// (StageInfo::is_put_in). An inserted node has the name of its stage or, if that is taken,
/// STAGE_GIVER, with the node that it takes from. Nodes that take the same output by the same stage
/// share it. A node with the name of the stage and neither `stage` nor `from` provides its options.
/// Inserts nothing if such a stage was written and no node takes from it: that node was meant.
GraphSpec with_missing_nodes(const GraphSpec& graph, const Registry& registry);

}  // namespace melflow
