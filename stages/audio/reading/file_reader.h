// file_reader.h - opens a file and checks it before its bytes are read, for every engine, and
// detects whether it was written to while it was read.
//
// In:  FileRef, as listed.
// Out: RawBytes with memory for the file, or with the open file if it is large; or an ItemError.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pipeline/base/memory.h"
#include "pipeline/base/result.h"
#include "stages/files/file_state.h"
#include "stages/files/unique_fd.h"
#include "stages/items.h"

namespace melflow {

enum class Advise { none, sequential, willneed };

class FileReader {
 public:
  struct Settings {
    std::size_t buffer = 0;   // largest read, and the window on a large file [bytes]
    std::uint64_t whole = 0;  // files up to this size are read at once [bytes]
    bool noatime = true;
    Advise advise = Advise::sequential;
  };
  explicit FileReader(const Settings& settings) : settings_(settings) {}

  const Settings& settings() const { return settings_; }
  // The memory through which a large file is read piece by piece [bytes].
  std::size_t window() const;

  // The flags for open(2).
  int flags() const;
  // After open() failed with `error` under `flags`: whether to retry with flags(), which may have
  // changed. Only a file's owner may open it with O_NOATIME. A corpus mostly has one owner, so
  // after one refusal the flag is omitted for all files.
  bool retry(int error, int flags) const;
  // The path of the file that has the bytes.
  static const std::string& file_of(const FileRef& file) {
    return file.part ? file.part->file : file.path;
  }
  // Opens a file with these flags. On failure, the result is empty and `error` has the errno.
  UniqueFd open(const std::string& path, int& error) const;
  static ItemError open_error(const FileRef& file, int error);

  // What is to be read of an open file.
  struct Reading {
    std::shared_ptr<RawBytes> out;
    FileState before;
    std::vector<std::byte> packed;     // of a deflated member
    std::byte* to = nullptr;           // null: nothing, as `out` has the open file
    std::uint64_t from = 0, size = 0;  // [bytes] of the file
  };
  // Checks an open file against its listing. For a small file, leases memory, and `fd` stays with
  // the caller; for a large one, takes ownership of `fd`.
  Result<Reading> admit(std::shared_ptr<const FileRef> file, UniqueFd& fd, BufferPool& pool) const;
  // Unpacks a large deflated member into a temporary file.
  static Result<UniqueFd> inflate_large(const FileRef& file, int fd);
  // Called after the last byte was read: unpacks a member of an archive, and checks it. Returns the
  // error for a file that was written to meanwhile, since its bytes may be a mixture.
  static std::optional<ItemError> finish(Reading& reading, int fd);
  // Does all of this: returns the bytes of a file, small or large, or of a container's recording.
  Result<std::shared_ptr<const RawBytes>> read(std::shared_ptr<const FileRef> file,
                                               BufferPool& pool) const;

  // The result for a file that is not to be opened because its samples are stored or it is known to
  // be unreadable; nullopt for any other file.
  std::optional<Result<std::shared_ptr<const RawBytes>>> unread(
      const std::shared_ptr<const FileRef>& file) const;

  static ItemError read_error(int error);
  // The error for a file that ended after `got` bytes.
  static ItemError shorter(const Reading& reading, std::uint64_t got);
  // Returns the error for a file that was written to since its state was `before`.
  static std::optional<ItemError> check_unchanged(int fd, const FileState& before);

 private:
  void advise(int fd, std::uint64_t begin, std::uint64_t size) const;

  Settings settings_;
  mutable std::atomic<bool> noatime_refused_{false};
};

}  // namespace melflow
