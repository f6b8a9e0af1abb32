// All that the program prints goes through here (but for the progress bar's own codes), so that nothing in a file's
// name, a label or a stored reason can steer the terminal.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace melflow {

/// Prints, as printable() says, and flushes; nothing happens when nobody is there to read it any more.
void put(std::FILE* out, const std::string& text);

template <class... T>
void say(std::FILE* out, fmt::format_string<T...> text, T&&... values) {
  put(out, fmt::format(text, std::forward<T>(values)...));
}

/// "melflow: MESSAGE" on stderr, of a very long message its beginning.
void complain(const std::string& message);

}  // namespace melflow
