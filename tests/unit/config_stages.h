// Configurations of three small stages over numbers, with an option of every kind:
//
//   list {root, include}    scale {gain, block, mode, strict, span: {length, hop}}    keep {path}
#pragma once

#include <string>
#include <vector>

#include "config/load.h"

namespace melflow::test {

/// With nothing in it but those three.
const Registry& config_registry();

/// The text of a configuration of files, scale and out. `scale`, the lines of that node, begins at
/// line 4 when `top` is one line.
std::string with_scale(const std::string& scale, const std::string& top = "version: 1");
inline constexpr const char* kScale = "  scale: {stage: scale, from: files, gain: 3}";

/// Reads a text that goes by the name of t.yaml.
Plan load(const std::string& text, const LoadOptions& options = {});
/// What load() complains about, one line a problem.
std::string problems_of(const std::string& text, const LoadOptions& options = {});

std::vector<std::string> lines(const std::string& text);

/// An option of a node as JSON; `name` may be one of a group ("span.length").
std::string option(const Plan& plan, const std::string& node, const std::string& name);

}  // namespace melflow::test
