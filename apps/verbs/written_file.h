// A file that a verb makes beside what it prints: that it can be written is known before the work,
// and it is there as a whole after it. A device or a pipe (--json=/dev/fd/3) is written as it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stages/files/unique_fd.h"

namespace melflow {

class WrittenFile {
 public:
  /// Throws RunError where it cannot be written, or would take the place of one of `inputs`.
  explicit WrittenFile(std::string path, const std::vector<std::string>& inputs = {});
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;
  /// Without write() nothing has changed.
  ~WrittenFile();

  /// Once, whatever comes of it. Throws RunError; a file that was there before still is then.
  void write(std::string_view bytes);

 private:
  std::string path_, part_;
  UniqueFd fd_;  // of the .part; none: the path itself is written
  bool is_over_ = false;
};

}  // namespace melflow
