// Puts nodes into a graph that it needs and that need no options, so that nobody has to write them:
// segment and batch between decode and mel.
#pragma once

#include <string>

#include "pipeline/plan/plan.h"
#include "pipeline/stage/registry.h"

namespace melflow {

/// Whether a node of that name without `stage` and `from` has the options of an inserted one.
bool is_put_in(const Registry& registry, const std::string& name);

/// The graph with a node for each stage that is registered to be put in (StageInfo::is_put_in) and
/// without which a node does not take what its `from` gives. A node is called as its stage, or
/// where another one is, STAGE_GIVER, by the node that it takes from; nodes that take the same from
/// the same one share it. A node of the name of the stage that has neither `stage` nor `from` gives
/// it its options. Nothing is put in where such a stage was written and no node takes from it: that
/// one was meant.
GraphSpec with_missing_nodes(const GraphSpec& graph, const Registry& registry);

}  // namespace melflow
