// Numbers in .npy files of numpy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace melflow {

struct NpyArray {
  std::vector<std::uint64_t> shape;
  std::vector<double> values;  ///< the last axis varies fastest
};

/// Reads float32 or float64 values in C order, at most 2^24. Throws RunError with the path and the
/// problem.
NpyArray read_npy_array(const std::string& path);

/// Does the same with the bytes of a .npy file, also of int64. `path`: for messages.
NpyArray npy_array_of(std::string_view file, const std::string& path);

/// Reads one dimension of at most 2^20 values. Throws RunError as read_npy_array() does.
std::vector<double> read_npy_vector(const std::string& path);

}  // namespace melflow
