// Nodes that another one stands for, or puts into the graph: their options are a group inside that
// one's own, and their names are that one's with the group's behind it.
#pragma once

#include <optional>
#include <string>

#include "pipeline/registry.h"

namespace melflow {

/// The options that every such node has.
struct NodeGroup {
  std::optional<int> concurrency, queue;
  void describe(Schema& s) {
    s.field("concurrency", concurrency, "items that the group's node processes at the same time")
        .range(1, 1024)
        .tuning();
    s.field("queue", queue, "items that may wait before the group's node")
        .range(1, 1 << 20)
        .tuning();
  }
};

/// Of their stages that have no more than that.
struct NoOptions {
  void describe(Schema&) {}
};

/// The node `spec.name`.`group` of a kind `stage`, with what is written in the group; it takes
/// nothing yet. Options are not checked.
inline NodeSpec grouped_node(const NodeSpec& spec, const char* group, const char* stage) {
  const Value* written = spec.options.find(group);
  NodeSpec out{spec.name + "." + group, spec.mark,
               written != nullptr && written->is_map() ? *written : Value::map({}, spec.mark)};
  out.options.set("stage", Value::scalar(stage, spec.mark));
  return out;
}

}  // namespace melflow
