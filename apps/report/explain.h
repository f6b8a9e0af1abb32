// Describes a plan: the types on the edges of each node, and each option with its value and the
// origin of that.
#pragma once

#include <string>

#include "pipeline/plan/plan.h"

namespace melflow {

enum class Explained { every_option, what_is_set };

/// `melflow validate --explain`.
std::string explain_text(const Plan& plan, Explained which);

}  // namespace melflow
