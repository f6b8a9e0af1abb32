// Kaldi's compressed matrices (its compressed-matrix.cc), which keep a value in one byte or two:
//
//   "CM "   for each column 4 uint16: its least value, two quartiles and greatest value, of the
//           range of all values; then for each column a byte a value: 0 to 64 between the least
//           value and the lower quartile, to 192 the upper one, to 255 the greatest value
//   "CM2 "  a uint16 a value, row by row: 0 to 65535 of the range
//   "CM3 "  a byte a value, row by row: 0 to 255 of the range
//
// Each begins with the least value and the range (float32), rows and columns (int32), all
// little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace melflow {

/// The numbers of these formats in copy-feats: 2 is "CM ", 3 "CM2 ", 5 "CM3 "; 1 chooses 3 for up
/// to 8 rows, else 2.
constexpr int kKaldiCompressions[] = {1, 2, 3, 5};

/// The bytes of a matrix, from its token on.
std::size_t compressed_bytes(std::int64_t rows, std::int64_t columns, int compression);
/// `values`: [rows, columns], all finite.
std::string compressed_matrix(const std::vector<float>& values, std::int64_t rows,
                              std::int64_t columns, int compression);
/// The values [rows, columns] of such bytes. Throws RunError if they are no matrix of that size.
std::vector<float> expanded_matrix(std::string_view bytes, std::int64_t rows, std::int64_t columns,
                                   int compression);

}  // namespace melflow
