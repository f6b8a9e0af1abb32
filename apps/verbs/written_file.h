// A file that a verb writes besides its printed output. Whether it can be written is checked before
// the work, and it appears as a whole afterwards. A device or a pipe (--json=/dev/fd/3) is written
// directly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stages/files/unique_fd.h"

namespace melflow {

class WrittenFile {
 public:
  /// Throws RunError when the file cannot be written, or would replace one of `inputs`.
  explicit WrittenFile(std::string path, const std::vector<std::string>& inputs = {});
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;
  /// Leaves everything unchanged unless write() was called.
  ~WrittenFile();

  /// Writes the file; to be called once. Throws RunError and keeps an earlier file.
  void write(std::string_view bytes);

 private:
  std::string path_, part_;
  UniqueFd fd_;  // of the .part file; none: the path itself is written
  bool is_over_ = false;
};

}  // namespace melflow
