// A disk of a few MiB that can be filled: a file system in memory, mounted for a test.
#pragma once

#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <string>

#include "tests/support/temp_folder.h"

namespace melflow::test {

class SmallDisk {
 public:
  /// Needs root; where mounting is not allowed, ok() is false and the folder is an ordinary one.
  explicit SmallDisk(std::size_t bytes)
      : ok_(::mount("tmpfs", folder_.path().c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
                    ("size=" + std::to_string(bytes)).c_str()) == 0) {}
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (ok_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] const std::string& path() const { return folder_.path(); }
  [[nodiscard]] std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  TempFolder folder_;
  bool ok_;
};

/// Limits files of this process to `bytes` as long as it lives: larger writes fail with EFBIG.
/// Needs no privileges.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::size_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace melflow::test
