// Whether a text can be a configuration at all, looked at before YAML reads it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pipeline/value.h"

namespace melflow {

constexpr std::size_t kMostText = std::size_t{1} << 20;  ///< of a configuration [bytes]

/// Ends the reading of a text: the rest is not worth a look.
struct Refusal {
  Mark mark;
  std::string message;
};

/// The first byte of `text`, which begins at `at`, that no configuration has: one that is no UTF-8,
/// a control character, or one behind the most there may be.
std::optional<Refusal> find_refusal(std::string_view text, Mark at);

}  // namespace melflow
