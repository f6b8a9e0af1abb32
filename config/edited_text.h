// Puts values of options into the text of a configuration and leaves all else as it was written.
#pragma once

#include <string>
#include <vector>

namespace melflow {

struct NewValue {
  std::string option;  ///< NODE.OPTION, or a top-level option without a point
  std::string value;   ///< a plain scalar
  std::string remark;  ///< a comment above the line
};

/// The text with these values: in the place of a plain scalar, or as a new entry of the node. An
/// option that cannot be put there (its value has another form) is left
/// as it was: whoever must know reads the result. `name` stands for the file in messages.
/// Throws ConfigError where the text cannot be read.
std::string edited_text(std::string text, const std::string& name,
                        const std::vector<NewValue>& values);

}  // namespace melflow
