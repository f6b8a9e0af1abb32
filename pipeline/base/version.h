// The version of melflow; CMake and scikit-build read it from here.
#pragma once

namespace melflow {
inline constexpr const char* kVersion = "0.2.0";
}  // namespace melflow
