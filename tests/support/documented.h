// The datasets that docs/output-format.md describes, for tests that compare outputs with them.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "tests/support/source_path.h"
#include "tests/support/temp_folder.h"

namespace melflow::test {

/// A dataset with one value per file: "files/offset", "int64".
struct DocumentedColumn {
  std::string name, type;
  bool is_optional = false;
};

/// Parses lines such as "| `/files/offset` | int64 | first row of the file |".
inline std::vector<DocumentedColumn> documented_columns() {
  std::vector<DocumentedColumn> out;
  std::istringstream text(read_bytes(source_path("docs/output-format.md")));
  const std::string begin = "| `/files/";
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with(begin)) continue;
    const std::size_t name_end = line.find('`', begin.size());
    const std::size_t type = line.find("| ", name_end) + 2;
    out.push_back({line.substr(4, name_end - 4), line.substr(type, line.find(' ', type) - type),
                   line.find("; only with ") != line.npos});
  }
  return out;
}

}  // namespace melflow::test
