// Reads whole tables of any kind, and says what holds for each row.
#pragma once

#include <string>
#include <vector>

#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"
#include "tests/fuzz/fuzz_input.h"

namespace melflow::fuzz {

/// Writes the pieces of an input, which U+0001 separates, to files of these names; those after the
/// last piece are not there.
inline void write_files(std::string_view pieces, const std::vector<std::string>& names) {
  folder().clear();
  for (const std::string& name : names) {
    const std::size_t end = std::min(pieces.find('\x01'), pieces.size());
    write_file(folder() / name, pieces.substr(0, end));
    if (end == pieces.size()) return;
    pieces.remove_prefix(end + 1);
  }
}

/// Reads every cell: of UTF-8 where `is_text`, without a zero byte, of lines that ascend.
inline void read_all(TableReader& table, bool is_text = true) {
  int line = 0;
  for (bool is_row = true, is_bad = false; is_row; is_bad = false) {
    try {
      is_row = table.next();
    } catch (const BadLine&) {
      is_bad = true;  // the lines after it can be read
    }
    if (!is_row) return;
    require(table.line() > line);
    line = table.line();
    for (std::size_t c = 0; c < table.columns().size(); ++c) {
      if (table.column(table.columns()[c]) < 0) continue;
      try {
        const std::string& cell = table.cell(static_cast<int>(c));
        if (!is_bad) require(cell.find('\0') == cell.npos && (!is_text || is_utf8(cell)));
      } catch (const BadLine&) {
        // The row's other cells can be read.
      }
    }
  }
}

}  // namespace melflow::fuzz
