// All output of the program is printed through these functions, except the codes of the progress
// bar, so that no file name, label or stored reason can control the terminal.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "pipeline/base/text.h"

namespace melflow {

/// Prints printable(text) and flushes; does nothing when the output's reader is gone.
void put(std::FILE* out, const std::string& text);
/// The file that put() writes to for stdout.
std::FILE* standard_output();
/// Moves stdout: what others write to it from now on, as functions of Python and the processes that
/// they start do, goes to stderr, and only what put() writes to it goes to where it was.
void keep_output_apart();

/// Puts texts on one line; other values stay as they are.
template <class T>
decltype(auto) in_line(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>)
    return one_line(value);
  else
    return value;
}

/// Formats and prints; texts among the values are put on one line.
template <class... T>
void say(std::FILE* out, fmt::format_string<const T&...> text, const T&... values) {
  put(out, fmt::format(fmt::runtime(text), in_line(values)...));
}

/// Prints "melflow: MESSAGE" on one line of stderr; of a very long message, only the beginning.
void complain(const std::string& message);

}  // namespace melflow
