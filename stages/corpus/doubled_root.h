// Finds paths of a list that name the root themselves, so that it stands before them twice.
#pragma once

#include <string>

#include "stages/manifest.h"

namespace melflow {

/// What to say of a list of files whose first file is a URL, or not below the root: that it is where its path
/// leads without the root, or else, where the last one is missing, too, where it was looked for; "" else. `list`: the file in
/// which the paths stand.
std::string doubled_root(const std::string& list, const Manifest& manifest);

}  // namespace melflow
