// Explains why a text is no YAML, with the line of the mistake: the parser's messages are short and
// name the place where it gave up, often a line below.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

struct SyntaxHint {
  int line = 0, column = 0;  ///< of the mistake, counted from 0
  std::string text;          ///< "the { at line 5, column 12 is not closed ...", or ""
};

/// What to say in place of the parser's message, and where the mistake is. The parser gave up with
/// `message` at `line` and `column`, counted from 0.
SyntaxHint syntax_hint(std::string_view text, int line, int column, std::string_view message);

}  // namespace melflow
