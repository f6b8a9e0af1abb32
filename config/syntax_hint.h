// What is wrong with a text that is no YAML, in words that name the line: the parser's own are short
// and stand where it gave up, often a line below the slip.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

/// `line` and `column`, from 0, are where the parser gave up with `message`. "" or a text to go
/// behind the message: "; the { at line 5, column 12 is not closed ...".
std::string syntax_hint(std::string_view text, int line, int column, std::string_view message);

}  // namespace melflow
