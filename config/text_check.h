// Checks whether a text can be a configuration at all, before it is parsed as YAML.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pipeline/base/value.h"

namespace melflow {

constexpr std::size_t kMostText = std::size_t{1} << 20;  ///< longest configuration [bytes]

/// Thrown to stop reading a text.
struct Refusal {
  Mark mark;
  std::string message;
};

/// Finds the first byte of `text`, which begins at `at`, that a configuration must not contain: a
/// byte that is not UTF-8, a control character, or one beyond `most` bytes. `what`: the text, for
/// messages.
std::optional<Refusal> find_refusal(std::string_view text, Mark at,
                                    std::string_view what = "configuration",
                                    std::size_t most = kMostText);

}  // namespace melflow
