// Writes a configuration as YAML that reads as the same one.
#pragma once

#include <string>

#include "pipeline/base/value.h"

namespace melflow {

/// A configuration that is filled in (LoadOptions::filled_in) as the text of a file that has no variables,
/// anchors. A text in it that is no UTF-8 stays as it is, and such a file cannot be read.
std::string yaml_text(const Value& configuration);

/// A text as a value that means just that, in quotes.
std::string yaml_quoted(const std::string& text);

}  // namespace melflow
