// Text that may hold any byte, such as a file's name, for formats that know Unicode only.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

/// A JSON text in which each byte of a string that is no part of UTF-8 becomes the escape of a lone
/// surrogate, \udc80 to \udcff: what Python's os.fsdecode() gives for such a name, so that
/// os.fsencode() gives its bytes back.
std::string utf8_or_escaped(std::string_view json);
/// A JSON text of that kind with U+FFFD for each such byte, for parsers that know no lone
/// surrogate.
std::string without_escaped_bytes(std::string_view json);

}  // namespace melflow
