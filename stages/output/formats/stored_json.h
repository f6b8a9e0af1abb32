// JSON texts that outputs hold: their settings, and the document beside .npy rows.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "pipeline/problem.h"
#include "pipeline/utf8.h"

namespace melflow {

using StoredJson = nlohmann::ordered_json;

/// Throws RunError where it is none, or nested as deeply as nothing that melflow writes: who goes
/// through it may do so by calling itself.
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

/// The settings that are an output's attribute ('features', 'config'). Bytes of a path that are no
/// UTF-8, which stand in HDF5's as they are, become U+FFFD.
inline StoredJson parse_settings(const std::string& text) {
  return parse_stored(without_escaped_bytes(utf8_or_escaped(text)));
}

/// Null where it is none.
inline StoredJson parse_settings_or_null(const std::string& text) {
  try {
    return parse_settings(text);
  } catch (const RunError&) {
    return {};
  }
}

}  // namespace melflow
