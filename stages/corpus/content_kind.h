// Tells by its first bytes what a file is that should be text.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

/// What the file is, and what to do; "" where it may be text. `head`: its first bytes, 512 or more where
/// it has them; `path`: of the file.
std::string why_no_text(std::string_view head, const std::string& path);

}  // namespace melflow
