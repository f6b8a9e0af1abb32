#include "tests/stage/failing_calls.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

namespace {

constexpr int kEnded = 99;

std::atomic<int> left{0};  // calls until the one that fails; 0: none fails
std::atomic<bool> is_end{false};
std::atomic<int> lock_error{0};

std::atomic<ino_t> watched{0};
std::function<void()> after_fstat;

bool fails() {
  if (left == 0 || --left > 0) return false;
  if (is_end) _exit(kEnded);
  errno = EIO;
  return true;
}

}  // namespace

extern "C" {

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  if (fails()) return -1;
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}
int link(const char* from, const char* to) noexcept {
  if (fails()) return -1;
  return static_cast<int>(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int unlink(const char* path) noexcept {
  if (fails()) return -1;
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}
// A test cannot see whether data is on disk, and need not wait for it.
int fsync(int) { return fails() ? -1 : 0; }
int fdatasync(int) { return fails() ? -1 : 0; }
ssize_t pwrite(int fd, const void* data, std::size_t bytes, off_t at) {
  return fails() ? -1 : syscall(SYS_pwrite64, fd, data, bytes, at);
}
ssize_t pwrite64(int fd, const void* data, std::size_t bytes, off64_t at) {
  return pwrite(fd, data, bytes, at);
}
int close(int fd) {
  const bool is_failure = fails();
  const auto result = static_cast<int>(syscall(SYS_close, fd));
  if (is_failure) errno = EIO;
  return is_failure ? -1 : result;
}
int fstat(int fd, struct stat* st) noexcept {
  // Calls newfstatat directly, since this function hides glibc's.
  const auto result = static_cast<int>(syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH));
  if (ino_t inode = result == 0 ? st->st_ino : 0;
      inode != 0 && watched.compare_exchange_strong(inode, 0))
    after_fstat();
  return result;
}
int flock(int fd, int operation) noexcept {
  if (lock_error != 0) {
    errno = lock_error;
    return -1;
  }
  return static_cast<int>(syscall(SYS_flock, fd, operation));
}

}  // extern "C"

namespace melflow::test {

FailingCall::FailingCall(int n, bool ends) {
  is_end = ends;
  left = n;
}
FailingCall::~FailingCall() { left = 0; }
bool FailingCall::is_past() const { return left == 0; }

AfterFstat::AfterFstat(const std::string& path, std::function<void()> then) {
  struct stat st {};
  stat(path.c_str(), &st);
  after_fstat = std::move(then);
  watched = st.st_ino;
}
AfterFstat::~AfterFstat() { watched = 0; }

NoLocks::NoLocks(int error) { lock_error = error; }
NoLocks::~NoLocks() { lock_error = 0; }

bool detail::in_child(int n, void (*run)(const void*), const void* what) {
  const pid_t pid = fork();
  if (pid == 0) {
    const FailingCall end(n, true);
    run(what);
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (!WIFEXITED(status)) std::abort();
  return WEXITSTATUS(status) == kEnded;
}

}  // namespace melflow::test
