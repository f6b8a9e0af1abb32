// The header of a .npy file, format version 1.0 (numpy.lib.format):
//
//   "\x93NUMPY" 1 0, the length of the rest as uint16 little-endian, a Python dict as text, blanks
//   up to the length, a line feed
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace melflow {

/// numpy aligns data to this many bytes.
constexpr std::size_t kNpyAlignment = 64;
constexpr std::size_t kLongestNpyHeader = 65535 / kNpyAlignment * kNpyAlignment;

/// Makes a header. `descr`: the type as numpy writes it, quoted; `bytes`: the header's length, a
/// multiple of 64 and at most kLongestNpyHeader, or 0 for as many as it needs. Throws RunError when
/// it does not fit.
std::string npy_header(const std::string& descr, std::span<const std::uint64_t> shape,
                       std::size_t bytes = 0);

}  // namespace melflow
