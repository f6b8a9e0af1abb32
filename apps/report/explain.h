// Describes a plan: the types on the edges of each node, and each option with its value and where
// the value comes from.
#pragma once

#include <string>

#include "pipeline/plan/plan.h"

namespace melflow {

enum class Explained { every_option, what_is_set };

/// Returns the text of `melflow validate --explain`.
std::string explain_text(const Plan& plan, Explained which);

}  // namespace melflow
