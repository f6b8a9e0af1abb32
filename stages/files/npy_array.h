// Numbers in a .npy file of numpy's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace melflow {

struct NpyArray {
  std::vector<std::uint64_t> shape;
  std::vector<double> values;  ///< the last axis varies fastest
};

/// Of float32 or float64 in C's order, at most 2^24 values. Throws RunError with the path and what
/// is wrong.
NpyArray read_npy_array(const std::string& path);

/// Of a file of one dimension, at most 2^20 values. Throws RunError likewise.
std::vector<double> read_npy_vector(const std::string& path);

}  // namespace melflow
