// The version of melflow, from which CMake and scikit-build have it as well.
#pragma once

namespace melflow {
inline constexpr const char* kVersion = "0.1.0";
}  // namespace melflow
