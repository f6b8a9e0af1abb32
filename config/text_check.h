// Checks whether a text can be a configuration at all, before YAML reads it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pipeline/base/value.h"

namespace melflow {

constexpr std::size_t kMostText = std::size_t{1} << 20;  ///< longest configuration [bytes]

/// Thrown to end the reading of a text whose rest is not to be read.
struct Refusal {
  Mark mark;
  std::string message;
};

/// Finds the first byte of `text`, which begins at `at`, that cannot be in a configuration: one
/// that is no UTF-8, a control character, or one beyond kMostText.
std::optional<Refusal> find_refusal(std::string_view text, Mark at);

}  // namespace melflow
