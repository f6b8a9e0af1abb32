// A temporary folder that is removed together with its object.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "pipeline/base/problem.h"

namespace melflow {

class TemporaryFolder {
 public:
  /// Creates a folder in the system's temporary folder (TMPDIR). Throws RunError.
  TemporaryFolder() : TemporaryFolder(std::filesystem::temp_directory_path()) {}
  /// Creates a folder in `parent`. Throws RunError.
  explicit TemporaryFolder(const std::filesystem::path& parent) {
    std::string name = parent / "melflow-XXXXXX";
    if (mkdtemp(name.data()) == nullptr)
      throw RunError(fmt::format("{}: no folder can be made there: {}", parent.string(),
                                 std::strerror(errno)));
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace melflow
