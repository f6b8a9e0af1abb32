// Detects by its first bytes or its name what a file is that should be a list.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

/// What the file is, and what to do; "" where it may be text. `head`: its first bytes, 512 or more where
/// it has them; `path`: of the file.
std::string why_no_text(std::string_view head, const std::string& path);

/// By the path's ending: why it is no list of recordings that can be read, and what to do; "" where it may be one.
std::string why_no_list(const std::string& path);
/// The part of why_no_list() that is of packed files.
std::string why_packed(const std::string& path);

}  // namespace melflow
