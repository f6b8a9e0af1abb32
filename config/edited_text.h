// The text of a configuration with other values of some options: its comments, order and variables
// stay, and a comment above each change says why.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace melflow {

struct TextChange {
  std::string name;     ///< as for --set: mel.queue, memory.host, workers
  std::string value;    ///< as YAML
  std::string comment;  ///< one line, without '#'
};

/// `text` is a configuration that can be read. Nothing where a place cannot be found in it, as where
/// a node comes from an alias.
std::optional<std::string> edited_text(const std::string& text,
                                       const std::vector<TextChange>& changes);

}  // namespace melflow
