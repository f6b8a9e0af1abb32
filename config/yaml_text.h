// Writes a configuration as YAML that reads as the same one, or puts values of options into the
// text of one and leaves all else as it was written.
#pragma once

#include <string>
#include <vector>

#include "pipeline/base/value.h"

namespace melflow {

/// A configuration that is filled in (LoadOptions::filled_in) as the text of a file that has no
/// variables, anchors. A text in it that is no UTF-8 stays as it is, and such a file cannot be
/// read.
std::string yaml_text(const Value& configuration);

/// A text as a value that means just that, in quotes.
std::string yaml_quoted(const std::string& text);

struct NewValue {
  std::string option;  ///< NODE.OPTION, or a top-level option without a point
  std::string value;   ///< a plain scalar
  std::string remark;  ///< a comment above the line
};

/// The text with these values: in the place of a plain scalar, or as a new entry of the node. An
/// option that cannot be put there (its value has another form) is left
/// as it was: a caller that must know reads the result. `name` stands for the file in messages.
/// Throws ConfigError where the text cannot be read.
std::string edited_text(std::string text, const std::string& name,
                        const std::vector<NewValue>& values);

}  // namespace melflow
