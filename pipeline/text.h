// Text that came from outside (names of files, labels, values of a configuration, reasons in an output) on its way
// into a message or onto a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace melflow {

/// Bytes of the UTF-8 character that begins at `at`; 0 where none does (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text, std::size_t at);

/// `text` with all that a terminal would act on instead of showing it as an escape: control characters (C0 but for
/// line feed and tab, DEL, C1) and marks that turn the direction of writing as \u001b, bytes that are no UTF-8 as
/// \x9b. JSON stays JSON with the same values.
std::string printable(std::string_view text);

/// The same on one line: line feed and tab as \n and \t.
std::string one_line(std::string_view text);

/// Of a text longer than `most` bytes its beginning and how long it is.
std::string shortened(std::string_view text, std::size_t most);

/// For a value inside a message: shortened, printable, on one line.
std::string excerpt(std::string_view text, std::size_t most = 100);

}  // namespace melflow
