// All that the program prints goes through here (but for the progress bar's own codes), so that nothing in a file's
// name, a label or a stored reason can steer the terminal.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "pipeline/text.h"

namespace melflow {

/// Prints, as printable() says, and flushes; nothing happens when nobody is there to read it any more.
void put(std::FILE* out, const std::string& text);

/// Texts on one line, whatever is in them; all else as it is.
template <class T>
decltype(auto) in_line(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>)
    return one_line(value);
  else
    return value;
}

/// Formats and prints; a text among the values cannot begin a line.
template <class... T>
void say(std::FILE* out, fmt::format_string<const T&...> text, const T&... values) {
  put(out, fmt::format(fmt::runtime(text), in_line(values)...));
}

/// "melflow: MESSAGE" on one line of stderr, of a very long message its beginning.
void complain(const std::string& message);

}  // namespace melflow
