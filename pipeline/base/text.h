// Text that came from outside (names of files, labels, values of a configuration, reasons in an
// output) on its way into a message, onto a terminal, or into a format that knows Unicode only.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace melflow {

/// The length [bytes] of the UTF-8 character that begins at `at`; 0 where none does (Unicode 15,
/// table 3-7).
std::size_t utf8_length(std::string_view text, std::size_t at);

/// Replaces everything in `text` that a terminal would act on by an escape: control characters (C0
/// except line feed and tab, DEL, C1) and marks that change the direction of writing by \u001b,
/// bytes that are no UTF-8 by \x9b. JSON stays JSON with the same values.
std::string printable(std::string_view text);

/// As printable(), on one line: line feed and tab become \n and \t.
std::string one_line(std::string_view text);

/// A text longer than `most` bytes is cut to its beginning, followed by its length.
std::string shortened(std::string_view text, std::size_t most);

constexpr std::size_t kLongestPath = 4096;  ///< the system's own limit [bytes]

/// Prepares a value for a message: shortened, printable, on one line.
std::string excerpt(std::string_view text, std::size_t most = 100);

/// Replaces each byte of a JSON text that is not part of UTF-8 by the escape of a lone surrogate,
/// \udc80 to \udcff, as Python's os.fsdecode() does for such a name, so that os.fsencode() gives
/// its bytes back.
std::string utf8_or_escaped(std::string_view json);
/// Replaces each such escape in a JSON text by U+FFFD, for parsers that do not accept lone
/// surrogates.
std::string without_escaped_bytes(std::string_view json);

}  // namespace melflow
