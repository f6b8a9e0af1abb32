// The unit of samples that are no longer a share of full scale.
#pragma once

#include <string>

#include "pipeline/stage/facts.h"

namespace melflow::property {

/// Not set: full scale.
inline constexpr Property<std::string> kSampleUnit{"sample_unit"};

}  // namespace melflow::property
