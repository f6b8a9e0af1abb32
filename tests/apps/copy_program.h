// Installs the program elsewhere than where it was built.
#pragma once

#include <filesystem>
#include <string>

#include "tests/apps/process.h"

namespace melflow::test {

/// Copies the program and its library as `cmake --install` places them, without share/, and returns
/// the program's path.
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
