// Configurations of three small stages over numbers, with an option of every kind:
//
//   list {root, include}    scale {gain, block, mode, strict, span: {length, hop}}    keep {path}
#pragma once

#include <string>
#include <vector>

#include "config/load.h"

namespace melflow::test {

/// Returns a registry with only these three stages.
const Registry& config_registry();

/// Returns a configuration of files, scale and out. `scale`, the lines of that node, begins at line
/// 4 when `top` is one line.
std::string with_scale(const std::string& scale, const std::string& top = "version: 1");
inline constexpr const char* kScale = "  scale: {stage: scale, from: files, gain: 3}";

/// Reads a text under the name t.yaml.
Plan load(const std::string& text, const LoadOptions& options = {});
/// Returns the problems that load() reports, one per line.
std::string problems_of(const std::string& text, const LoadOptions& options = {});

std::vector<std::string> lines(const std::string& text);

/// Returns an option of a node as JSON; `name` may be in a group ("span.length").
std::string option(const Plan& plan, const std::string& node, const std::string& name);

}  // namespace melflow::test
