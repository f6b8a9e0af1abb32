// file_reader.h - how a file is opened and checked before its bytes are read, whoever reads them.
//
// In:  FileRef, as it was listed.
// Out: RawBytes with room for the file, or with the open file if it is large; or why there are
// none.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "pipeline/memory.h"
#include "pipeline/result.h"
#include "stages/files/file_state.h"
#include "stages/files/unique_fd.h"
#include "stages/items.h"

namespace melflow {

enum class Advise { none, sequential, willneed };

class FileReader {
 public:
  struct Settings {
    std::size_t buffer = 0;   // asked for in one read, and the window on a large file [bytes]
    std::uint64_t whole = 0;  // files up to this size are read at once [bytes]
    bool noatime = true;
    Advise advise = Advise::sequential;
  };
  explicit FileReader(const Settings& settings) : settings_(settings) {}

  const Settings& settings() const { return settings_; }
  // Of a file that is not read at once [bytes].
  std::size_t window() const;

  // For open(2).
  int flags() const;
  // After open() failed with `error` under `flags`: whether to try again, with flags() as they are
  // now. Only an owner may leave the access time alone; one corpus has one owner, mostly, so the
  // next files are not asked twice.
  bool retry(int error, int flags) const;
  // Opens it so. None: `error` says why, as errno does.
  UniqueFd open(const std::string& path, int& error) const;
  static ItemError open_error(const FileRef& file, int error);

  // Checks an open file against what was listed; leases room for a small one, hands on the `fd` of
  // a large one. Of a small one `fd` stays with the caller.
  // `before`: what check_unchanged() wants when all is read.
  Result<std::shared_ptr<RawBytes>> admit(std::shared_ptr<const FileRef> file, UniqueFd& fd,
                                          BufferPool& pool, FileState& before) const;

  // For what is not opened: a file whose samples are stored, or what is known to be unreadable;
  // nothing for any other.
  std::optional<Result<std::shared_ptr<const RawBytes>>> unread(
      const std::shared_ptr<const FileRef>& file) const;

  static ItemError read_error(int error);
  // The file ended after `got` bytes.
  static ItemError shorter(const RawBytes& bytes, std::uint64_t got);
  // After the last byte was read: the error of a file that was written to meanwhile, whose bytes
  // may be of two contents.
  static std::optional<ItemError> check_unchanged(int fd, const FileState& before);

 private:
  void advise(int fd) const;

  Settings settings_;
  mutable std::atomic<bool> noatime_refused_{false};
};

}  // namespace melflow
