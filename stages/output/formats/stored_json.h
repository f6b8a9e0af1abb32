// Parses the JSON texts in outputs: the settings, and the document beside .npy rows.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"

namespace melflow {

using StoredJson = nlohmann::ordered_json;

/// Parses a JSON text. Throws RunError when it is no JSON or is nested more than 100 levels deep,
/// which melflow never writes; so recursive code can walk through the result.
inline StoredJson parse_stored(const std::string& text) {
  constexpr int kDeepest = 100;
  const auto check_depth = [](int depth, StoredJson::parse_event_t, StoredJson&) {
    if (depth > kDeepest) throw RunError("JSON that is nested too deeply");
    return true;
  };
  try {
    return StoredJson::parse(text, check_depth);
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
