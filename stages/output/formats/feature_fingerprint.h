// A short name for feature settings: equal settings have equal hashes on every machine.
#pragma once

#include <string>

#include "pipeline/base/value.h"

namespace melflow {

/// XXH3-128 of to_json(features), 32 hexadecimal digits.
std::string feature_fingerprint(const Value& features);

}  // namespace melflow
