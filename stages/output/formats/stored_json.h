// Parses the JSON texts in outputs: the settings, and the document beside .npy rows.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/shallow_json.h"

namespace melflow {

using StoredJson = nlohmann::ordered_json;

/// Parses a JSON text. Throws RunError when it is no JSON or is nested too deeply (shallow_json.h).
inline StoredJson parse_stored(const std::string& text) {
  if (is_deep_json(text)) throw RunError("JSON that is nested too deeply");
  try {
    return StoredJson::parse(text);
  } catch (const StoredJson::exception& e) {
    throw RunError(e.what());
  }
}

/// Parses the settings in an output's attribute ('features' or 'config'). Bytes of a path that are
/// no UTF-8, which HDF5 attributes hold unchanged, become U+FFFD.
inline StoredJson parse_settings(const std::string& text) {
  return parse_stored(without_escaped_bytes(utf8_or_escaped(text)));
}

/// As parse_settings(); null where that throws.
inline StoredJson parse_settings_or_null(const std::string& text) {
  try {
    return parse_settings(text);
  } catch (const RunError&) {
    return {};
  }
}

}  // namespace melflow
