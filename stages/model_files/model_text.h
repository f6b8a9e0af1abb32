// The bytes and the text of models' files, within limits.
#pragma once

#include <string>
#include <string_view>

#include "pipeline/base/problem.h"
#include "pipeline/base/value.h"

namespace melflow {

inline constexpr std::size_t kMostModelText = std::size_t{8} << 20;  ///< [bytes]

/// Reads a regular file of at most kMostModelText bytes. Throws ConfigError.
std::string read_model_bytes(const std::string& path);

/// Reads YAML or JSON, which is YAML but for escapes of halves of characters. A value with a tag is
/// a map from the tag to it.
Value read_model_text(const std::string& text, const std::string& path, Problems& problems);

/// The text of a map's entry; "" where there is none.
std::string text_at(const Value& map, std::string_view key);

}  // namespace melflow
