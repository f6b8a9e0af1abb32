// Writes a `.commit` file in the format described in stages/files/publication.h.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace melflow::test {

/// `how`: the fate of an earlier file, '0' to '2' as in Existing; `names`: of the files that are
/// about to be renamed.
inline void write_commit(const std::string& path, char how, const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += how + name + '\0';
  const std::uint64_t hash = XXH3_64bits(list.data(), list.size());
  std::ofstream(path, std::ios::binary)
      << "melflow names 1\n"
      << std::string(reinterpret_cast<const char*>(&hash), sizeof hash) << list;
}

}  // namespace melflow::test
