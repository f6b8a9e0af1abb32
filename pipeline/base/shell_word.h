// Words of commands in messages, which may be copied into a shell.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

/// Quotes a word where a shell would interpret it.
std::string shell_word(std::string_view text);

}  // namespace melflow
