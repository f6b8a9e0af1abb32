// A list of numbers in a .npy file of numpy's.
#pragma once

#include <string>
#include <vector>

namespace melflow {

/// Of a file of one dimension, float32 or float64, at most 2^20 values. Throws RunError with the path
/// and what is wrong.
std::vector<double> read_npy_vector(const std::string& path);

}  // namespace melflow
