// Code blocks in the project's documentation.
#pragma once

#include <fstream>
#include <map>
#include <string>

#include "tests/support/source_path.h"

namespace melflow::test {

/// Returns all lines of a page's code blocks in one language ("yaml"), by the heading directly
/// above them; only those below headings of that `level` ("## ").
inline std::map<std::string, std::string> blocks_of(const std::string& page,
                                                    const std::string& language,
                                                    const std::string& level) {
  std::ifstream text(source_path(page));
  std::map<std::string, std::string> out;
  std::string heading;
  bool is_block = false, is_wanted = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```")) {
      is_block = !is_block;
      is_wanted = is_block && line.substr(3) == language && heading.starts_with(level);
    } else if (is_wanted) {
      out[heading.substr(level.size())] += line + "\n";
    } else if (!is_block && line.starts_with('#')) {
      heading = line;
    }
  }
  return out;
}

}  // namespace melflow::test
