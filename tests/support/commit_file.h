// Writes a `.commit` file, as the head of stages/files/publication.h has it.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace melflow::test {

/// `how`: what is to become of an earlier file, '0' to '2' as in Existing; `names`: of the files
/// that are about to have their names.
inline void write_commit(const std::string& path, char how, const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += how + name + '\0';
  const std::uint64_t hash = XXH3_64bits(list.data(), list.size());
  std::ofstream(path, std::ios::binary)
      << "melflow names 1\n"
      << std::string(reinterpret_cast<const char*>(&hash), sizeof hash) << list;
}

}  // namespace melflow::test
