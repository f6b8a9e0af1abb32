// What a plan makes of a configuration: of every node the types on its edges, and each option with
// its value and where that comes from.
#pragma once

#include <string>

#include "pipeline/plan/plan.h"

namespace melflow {

enum class Explained { every_option, what_is_set };

/// `melflow validate --explain`.
std::string explain_text(const Plan& plan, Explained which);

}  // namespace melflow
