// Converts settings and texts to JSON, and settings back.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "pipeline/base/value.h"

namespace melflow {

/// Settings as JSON. Text that is no UTF-8, such as odd file names, stays as it is.
nlohmann::ordered_json json_of(const Value& value);

/// JSON as settings. Strings become plain scalars, as in YAML without quotes.
Value value_of(const nlohmann::ordered_json& json);

/// `text` as a string of JSON, in quotes. A byte that is no UTF-8 becomes an escape, as in
/// utf8_or_escaped().
std::string json_string(std::string_view text);

}  // namespace melflow
