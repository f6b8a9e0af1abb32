// Opens and reads the files that a user, another program or data names: configurations, lists,
// documents of runs, models. Refuses what may never answer or end: a FIFO without a writer, or a
// device. Everything that is read is opened here, or with kInputFlags and then not_a_file(), where
// an engine opens it or the file stays open for writing.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <vector>

namespace melflow {

/// Opens without waiting for the writer of a FIFO, and no terminal becomes that of this process.
inline constexpr int kInputFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

/// What an opened file is where it is no regular file: "a FIFO, not a file"; else "".
std::string not_a_file(mode_t mode);

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
  [[nodiscard]] bool is_missing() const { return error_ == ENOENT; }
  /// The errno of the problem, EINVAL for what is no file; 0 without one.
  [[nodiscard]] int error() const { return error_; }

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
  int error_ = 0;
  std::string problem_;
};

/// Returns ". Did you mean 'clips'?" with the path of the most similar name in the same folder; ""
/// if none is similar or the folder cannot be listed.
std::string near_path(const std::string& path);

/// Says why there is no file: "there is no such file. Did you mean 'out.h5'?"; or lists the files
/// of its folder that end in one of `endings`; or names the folder that is missing.
std::string no_such_file(const std::string& path, const std::vector<std::string>& endings);

}  // namespace melflow
