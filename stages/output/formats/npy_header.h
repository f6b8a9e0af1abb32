// The header of a .npy file, format version 1.0 (numpy.lib.format):
//
//   "\x93NUMPY" 1 0, the length of what follows as uint16 little-endian, a Python dict as text,
//   filled up with blanks, a line feed
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace melflow {

/// numpy aligns data to this many bytes.
constexpr std::size_t kNpyAlignment = 64;
constexpr std::size_t kLongestNpyHeader = 65535 / kNpyAlignment * kNpyAlignment;

/// `descr`: the type as numpy writes it, quoted. The header takes `bytes` (a multiple of 64, at
/// most kLongestNpyHeader); 0: as many as it needs. Throws RunError where it does not fit.
std::string npy_header(const std::string& descr, std::span<const std::uint64_t> shape,
                       std::size_t bytes = 0);

}  // namespace melflow
