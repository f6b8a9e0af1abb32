// The program as it is installed, elsewhere than it was built.
#pragma once

#include <filesystem>
#include <string>

#include "tests/apps/process.h"

namespace melflow::test {

/// Copies it and its library as `cmake --install` lays them out, without share/, and gives its
/// path.
inline std::string copy_program(const TempFolder& folder) {
  namespace fs = std::filesystem;
  const fs::path built = fs::path(MELFLOW_PROGRAM).parent_path().parent_path();
  for (const std::string name : {"bin/melflow", "lib/libmelflow.so.0"}) {
    fs::create_directories(fs::path(folder / name).parent_path());
    fs::copy_file(built / name, folder / name);
  }
  return folder / "bin/melflow";
}

}  // namespace melflow::test
