// Files in numpy's format, byte by byte.
#pragma once

#include <cstring>
#include <string>
#include <vector>

namespace melflow::test {

/// Returns a file in numpy's format, with a header of any version. `shape`: "3,", "2, 3".
inline std::string npy(const std::string& type, const std::string& shape, const std::string& data,
                       char version = 1) {
  const std::string dict =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }\n";
  std::string out = "\x93NUMPY";
  out += {version, '\0', static_cast<char>(dict.size()), '\0'};
  if (version > 1) out += {'\0', '\0'};
  return out + dict + data;
}

template <class Real>
std::string bytes_of(const std::vector<Real>& values) {
  std::string out(values.size() * sizeof(Real), '\0');
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

}  // namespace melflow::test
