// A file that a verb writes besides its printed output. Whether it can be written is checked before
// the work, and it appears as a whole afterwards. It replaces only an earlier one of its kind: no
// recording, list, output or other file of the user's. A device or a pipe (--json=/dev/fd/3) is
// written directly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stages/files/unique_fd.h"

namespace melflow {

struct Plan;

constexpr const char* kAnyFile = "";

/// Whether a run over its folder would take a file of this name for a recording.
bool has_name_of_recording(const std::string& path);

/// The files that a run of the plan would make.
std::vector<std::string> files_made(const Plan& plan);

class WrittenFile {
 public:
  /// Throws RunError when the file cannot be written, would replace one of `inputs`, or a file that
  /// is not empty and has no `mark` in its first 64 KiB; kAnyFile: replaces any. `mark`
  /// must outlive the object.
  explicit WrittenFile(std::string path, const char* mark,
                       const std::vector<std::string>& inputs = {});
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;
  /// Leaves everything unchanged unless write() was called.
  ~WrittenFile();

  /// Whether write() replaces the file as a whole, and does not write into it.
  [[nodiscard]] bool is_replaced() const { return static_cast<bool>(fd_); }
  /// Throws RunError when the file is one of `outputs`, which the run writes and which need not
  /// exist yet; write() then does nothing.
  void keep_off(const std::vector<std::string>& outputs);
  /// Writes the file; to be called once. Throws RunError and keeps an earlier file.
  void write(std::string_view bytes);

 private:
  void check_replaced() const;
  void give_up();

  std::string path_, part_;
  const char* mark_;
  UniqueFd fd_;  // of the .part file; none: the path itself is written
  bool is_over_ = false;
};

}  // namespace melflow
