// Converts settings to JSON and back.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "pipeline/value.h"

namespace melflow {

/// Settings as JSON. Text that is no UTF-8, such as odd file names, stays as it is.
nlohmann::ordered_json json_of(const Value& value);

/// JSON as settings. Strings become plain scalars, as in YAML without quotes.
Value value_of(const nlohmann::ordered_json& json);

}  // namespace melflow
