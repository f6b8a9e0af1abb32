// Reads files that a user or another program names: configurations, lists, documents of runs. Only
// what ends is read: a FIFO without a writer would block for ever, and a device may have no end.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace melflow {

/// Whether what is named by a descriptor may be a pipe or a device, too: /dev/stdin, or the
/// /dev/fd/63 that is a shell's <(...).
enum class Pipes { refused, by_descriptor };

class InputFile {
 public:
  /// Opens the file, or what a link leads to, without waiting.
  explicit InputFile(std::string path, Pipes pipes = Pipes::refused);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  /// Why it cannot be read: "cannot be read: Permission denied", "this is a FIFO, not a file"; ""
  /// where it can.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// Whether there is nothing of that name.
  [[nodiscard]] bool is_missing() const { return is_missing_; }

  /// The next `most` bytes, fewer at its end or where there is a problem().
  std::string read(std::size_t most);
  /// All that it has, which may be `most` bytes. Throws RunError with the path.
  std::string read_all(std::size_t most);
  /// The descriptor, the caller's to close. Throws RunError with the path.
  int release();

 private:
  void fail(int error);
  void require_sound() const;

  std::string path_;
  int fd_ = -1;
  bool is_missing_ = false;
  std::string problem_;
};

/// ". Did you mean 'clips'?": the path of the entry of its folder that has the nearest name; ""
/// where none is near, or the folder cannot be listed.
std::string near_path(const std::string& path);

/// Why there is no file: "there is no such file. Did you mean 'out.h5'?"; or the files of its
/// folder that end as one of `endings` does; or the folder that is missing.
std::string no_such_file(const std::string& path, const std::vector<std::string>& endings);

}  // namespace melflow
