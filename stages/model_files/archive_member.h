// A file within an archive, read in place.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace melflow {

/// The bytes of the member of that name, in whatever folder, of a tar, zip or npz archive; nothing
/// where there is none. Throws RunError where it cannot be read or is longer than kMostModelText.
std::optional<std::string> archive_member(const std::string& archive, std::string_view name);

}  // namespace melflow
