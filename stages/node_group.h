// Nodes that another node adds to the graph: their options are a group among that node's options,
// and their names are that node's name followed by the group's.
#pragma once

#include <optional>

#include "pipeline/stage/registry.h"

namespace melflow {

/// The options that every such node has: concurrency and queue.
struct NodeGroup {
  std::optional<int> concurrency, queue;
  void describe(Schema& s) {
    s.field("concurrency", concurrency,
            "largest number of items that the group's node processes at the same time")
        .range(1, 1024)
        .tuning();
    s.field("queue", queue, "largest number of items that may wait before the group's node")
        .range(1, 1 << 20)
        .tuning();
  }
};

/// Makes the node `spec.name`.`group` of the kind `stage`, with the options written in the group
/// and without inputs. Options are not checked here.
inline NodeSpec grouped_node(const NodeSpec& spec, const char* group, const char* stage) {
  const Value* written = spec.options.find(group);
  NodeSpec out{spec.name + "." + group, spec.mark,
               written != nullptr && written->is_map() ? *written : Value::map({}, spec.mark)};
  out.options.set("stage", Value::scalar(stage, spec.mark));
  return out;
}

}  // namespace melflow
