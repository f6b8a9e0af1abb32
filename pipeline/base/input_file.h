// Reads files that a user or another program names: configurations, lists, documents of runs.
// Refuses inputs that may never end: a FIFO without a writer, or a device.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace melflow {

/// Whether a path that names a descriptor may also lead to a pipe or a device: /dev/stdin, or the
/// /dev/fd/63 of a shell's <(...).
enum class Pipes { refused, by_descriptor };

class InputFile {
 public:
  /// Opens the file, or the target of a link, without waiting.
  explicit InputFile(std::string path, Pipes pipes = Pipes::refused);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  /// Why the file cannot be read: "cannot be read: Permission denied", "this is a FIFO, not a
  /// file"; "" if it can.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// Whether nothing of that name exists.
  [[nodiscard]] bool is_missing() const { return is_missing_; }

  /// Reads the next `most` bytes, fewer at the end of the file or if there is a problem().
  std::string read(std::size_t most);
  /// Reads the whole file, at most `most` bytes. Throws RunError with the path.
  std::string read_all(std::size_t most);
  /// Passes the descriptor to the caller, who must close it. Throws RunError with the path.
  int release();

 private:
  void fail(int error);
  void require_sound() const;

  std::string path_;
  int fd_ = -1;
  bool is_missing_ = false;
  std::string problem_;
};

/// Returns ". Did you mean 'clips'?" with the path of the most similar name in the same folder; ""
/// if none is similar or the folder cannot be listed.
std::string near_path(const std::string& path);

/// Says why there is no file: "there is no such file. Did you mean 'out.h5'?"; or lists the files
/// of its folder that end in one of `endings`; or names the folder that is missing.
std::string no_such_file(const std::string& path, const std::vector<std::string>& endings);

}  // namespace melflow
