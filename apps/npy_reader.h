// The part of FeatureFile that reads .npy files and what lies beside them.
#pragma once

#include <string>

#include "stages/raii/unique_fd.h"

namespace melflow {

/// The file where it is of that format, nothing otherwise.
UniqueFd open_if_npy(const std::string& path);

}  // namespace melflow
