// Finds a node of a plan by its name.
#pragma once

#include <string_view>

#include "pipeline/plan/plan.h"

namespace melflow::test {

/// Returns null if there is none.
inline const PlanNode* node_of(const Plan& plan, std::string_view name) {
  for (const PlanNode& node : plan.nodes)
    if (node.name == name) return &node;
  return nullptr;
}

}  // namespace melflow::test
