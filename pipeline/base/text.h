// Prepares text from outside (file names, labels, values of a configuration, reasons in an output)
// for a message, a terminal, or a format that accepts only Unicode.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace melflow {

/// Returns the length [bytes] of the UTF-8 character that begins at `at`; 0 if there is none
/// (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text, std::size_t at);
/// Whether a character of UTF-8 is white space, at which Python's str.split() splits.
bool is_white_space(std::string_view character);

/// Escapes everything in `text` that a terminal would act on: control characters (C0 except line
/// feed and tab, DEL, C1) and marks that change the direction of writing as \u001b, bytes that are
/// not UTF-8 as \x9b. JSON remains JSON with the same values.
std::string printable(std::string_view text);

/// Does the same as printable(), and escapes line feed and tab as \n and \t.
std::string one_line(std::string_view text);

/// Cuts a text longer than `most` bytes to its beginning, followed by its length.
std::string shortened(std::string_view text, std::size_t most);

/// Cuts a reason or warning, such as the text of an exception, to what is kept of it: at most
/// `most` bytes, with "… shortened" and its length at the end.
constexpr std::size_t kLongestKept = 4096;
std::string kept_text(std::string text, std::size_t most = kLongestKept);

constexpr std::size_t kLongestPath = 4096;  ///< the system's own limit [bytes]

/// Prepares a value for a message: without secrets of URLs, shortened, printable, on one line.
std::string excerpt(std::string_view text, std::size_t most = 100);

/// Replaces each byte of a JSON text that is not part of UTF-8 by the escape of a lone surrogate,
/// \udc80 to \udcff, as Python's os.fsdecode() does; os.fsencode() then restores the bytes.
std::string utf8_or_escaped(std::string_view json);
/// Replaces each such escape in a JSON text by U+FFFD, for parsers that reject lone surrogates.
std::string without_escaped_bytes(std::string_view json);

}  // namespace melflow
