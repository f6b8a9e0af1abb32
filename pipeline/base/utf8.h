// Stores text with arbitrary bytes, such as a file's name, in formats that know Unicode only.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

/// Replaces each byte of a JSON text that is not part of UTF-8 by the escape of a lone surrogate,
/// \udc80 to \udcff, as Python's os.fsdecode() does for such a name, so that os.fsencode() gives
/// its bytes back.
std::string utf8_or_escaped(std::string_view json);
/// Replaces each such escape in a JSON text by U+FFFD, for parsers that do not accept lone
/// surrogates.
std::string without_escaped_bytes(std::string_view json);

}  // namespace melflow
