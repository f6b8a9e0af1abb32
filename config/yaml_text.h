// Writes a configuration as YAML that reads back the same, or changes options in the text of a
// configuration and leaves everything else as written.
#pragma once

#include <string>
#include <vector>

#include "pipeline/base/value.h"

namespace melflow {

/// Writes a configuration as it is stored (stored_settings()) as a file without anchors.
std::string yaml_text(const Value& stored);

/// Writes a value in one line. Whatever its texts are, what is read is the same value, once its
/// variables are filled in; keys need UTF-8.
std::string yaml_flow(const Value& value);

/// Quotes a text so that YAML reads it literally.
std::string yaml_quoted(const std::string& text);

struct NewValue {
  std::string option;  ///< NODE.OPTION, or a top-level option without a dot
  std::string value;   ///< a plain scalar
  std::string remark;  ///< a comment above the line
};

/// Returns the text with these values: each replaces a plain scalar or becomes a new entry of its
/// node. Leaves an option unchanged if that is not possible (its value has another form); a caller
/// that must know reads the result. `name` stands for the file in messages. Throws ConfigError if
/// the text cannot be read.
std::string edited_text(std::string text, const std::string& name,
                        const std::vector<NewValue>& values);

}  // namespace melflow
