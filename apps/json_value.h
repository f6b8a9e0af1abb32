// Converts settings and texts to JSON, and JSON to settings.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "pipeline/base/value.h"

namespace melflow {

/// Converts settings to JSON. Text that is not UTF-8, such as odd file names, stays as it is.
nlohmann::ordered_json json_of(const Value& value);

/// Converts JSON to settings. Strings become plain scalars, as in YAML without quotes.
Value value_of(const nlohmann::ordered_json& json);

/// Returns `text` as a JSON string in quotes. Bytes that are not UTF-8 become escapes, as in
/// utf8_or_escaped().
std::string json_string(std::string_view text);

}  // namespace melflow
