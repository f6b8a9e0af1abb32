#include "stages/front_end_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace melflow {

std::vector<NodeSpec> front_end_nodes(const NodeSpec& spec, std::string_view stage,
                                      std::vector<NodeSpec> own) {
  const Value* preset = spec.options.find("preset");
  const FrontEnd* of =
      preset != nullptr && preset->is_scalar() ? find_front_end(preset->text()) : nullptr;
  const std::vector<FrontEndNode> nodes = of != nullptr ? of->nodes() : std::vector<FrontEndNode>();
  const auto main = std::find_if(nodes.begin(), nodes.end(),
                                 [stage](const FrontEndNode& n) { return n.stage == stage; });
  if (main == nodes.end()) return own;
  std::vector<NodeSpec> out;
  Value from = spec.options.find("from") != nullptr ? *spec.options.find("from") : Value();
  const auto add = [&](const FrontEndNode& node) {
    NodeSpec& n = out.emplace_back(NodeSpec{fmt::format("{}.{}", spec.name, node.stage), spec.mark,
                                            Value::map({}, spec.mark)});
    n.options.set("stage", Value::scalar(std::string(node.stage), spec.mark));
    n.options.set("from", from);
    for (const auto& [name, value] : node.options)
      n.options.set(std::string(name), Value::scalar(std::string(value), spec.mark));
    from = Value::scalar(n.name, spec.mark);
  };
  // What windows there are decides what a row is: the pipeline says so, not a preset.
  for (auto node = nodes.begin(); node != main; ++node)
    if (node->stage != "segment") add(*node);
  if (!out.empty()) {
    add({{}, "segment", {}});
    if (stage == "mel") add({{}, "batch", {}});
    own.front().options.set("from", from);
  }
  std::move(own.begin(), own.end(), std::back_inserter(out));
  from = Value::scalar(out.back().name, spec.mark);
  for (auto node = main + 1; node != nodes.end(); ++node) add(*node);
  return out;
}

}  // namespace melflow
