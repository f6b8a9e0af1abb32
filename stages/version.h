// Made by CMake.
#pragma once

namespace melflow {
inline constexpr const char* kVersion = "0.1.0";
}  // namespace melflow
