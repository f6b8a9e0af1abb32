#include "stages/files/own_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>  // renameat2
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"

namespace melflow {
namespace {

constexpr std::size_t kSearched = 64 << 10;  // [bytes]
constexpr int kMostLinks = 40;               // as many as the kernel follows

[[noreturn]] void cannot_be_written(const std::string& path, int error) {
  throw RunError(fmt::format("{}: cannot be written: {}", path, std::strerror(error)));
}

bool is_named(int fd, const std::string& path) {
  struct stat mine {
  }, named{};
  return fstat(fd, &mine) == 0 && lstat(path.c_str(), &named) == 0 && named.st_ino == mine.st_ino &&
         named.st_dev == mine.st_dev;
}

std::string head_of(int fd) {
  std::string head(kSearched, '\0');
  std::size_t size = 0;
  while (size < head.size()) {
    const ssize_t n = ::pread(fd, head.data() + size, head.size() - size, static_cast<off_t>(size));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  head.resize(size);
  return head;
}

void check_kind_and_owner(const std::string& path, const struct stat& st) {
  if (!S_ISREG(st.st_mode)) refuse_foreign(path);
  if (st.st_uid != ::geteuid())
    throw RunError(
        fmt::format("{}: belongs to user {}, and this run (user {}) goes on only with files of its "
                    "own user; remove it, or write elsewhere",
                    path, st.st_uid, ::geteuid()));
  if (st.st_nlink > 1)
    throw RunError(
        fmt::format("{}: this file has {} names (hard links), so that another file would be "
                    "changed with it; remove it, or write elsewhere",
                    path, st.st_nlink));
}

// The number of zeros that the text begins with.
std::size_t zeros_of(const std::string& text) {
  return std::min(text.find_first_not_of('\0'), text.size());
}

}  // namespace

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string without_links(std::string path) {
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    const std::filesystem::path next = std::filesystem::read_symlink(path, error);
    if (error) break;
    std::string led = (std::filesystem::path(path).parent_path() / next).string();
    // The link /dev/fd/3 leads to no name: "pipe:[4711]".
    if (!has_name(led) && std::filesystem::exists(path, error)) break;
    path = std::move(led);
  }
  return path;
}

bool has_name(const std::string& path) {
  struct stat st {};
  if (lstat(path.c_str(), &st) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return false;
  throw RunError(fmt::format("{}: cannot be looked at: {}", path, std::strerror(errno)));
}

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat x {
  }, y{};
  return stat(a.c_str(), &x) == 0 && stat(b.c_str(), &y) == 0 && x.st_ino == y.st_ino &&
         x.st_dev == y.st_dev;
}

UniqueFd create_empty(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  UniqueFd fd(::open(path.c_str(), kFlags, 0666));
  struct stat st {};
  if (!fd || fstat(fd.get(), &st) != 0 || S_ISREG(st.st_mode)) return fd;
  errno = EEXIST;
  return {};
}

int rename_file(const std::string& from, const std::string& to, unsigned flags) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0) return 0;
  if (errno == EINVAL && !has_name(to) && ::rename(from.c_str(), to.c_str()) == 0) return 0;
  return errno;
}

int sync_folder_of(const std::string& path) {
  const UniqueFd folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder && fsync(folder.get()) == 0 ? 0 : errno;
}

int close_error(int fd) {
  int error = 0;
  do {
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    error = copy < 0 || ::close(copy) != 0 ? errno : 0;
  } while (error == EINTR);
  return error;
}

Lock lock_file(int fd) {
  int error = 0;
  do {
    error = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error == 0) return Lock::held;
  return error == EWOULDBLOCK ? Lock::taken : Lock::unsupported;
}

void check_side_file(const std::string& path, std::string_view mark) {
  struct stat st {};
  if (!has_name(path) || lstat(path.c_str(), &st) != 0) return;
  check_kind_and_owner(path, st);
  if (mark.empty()) return;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (fd && !is_own(fd.get(), mark)) refuse_foreign(path);
}

UniqueFd open_locked(const std::string& path) {
  for (;;) {
    // Opened for writing, since network file systems lock only files opened that way.
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd && errno == ENOENT) return {};
    if (!fd) {
      const int error = errno;
      check_side_file(path);
      throw RunError(fmt::format("{}: cannot be opened: {}", path, std::strerror(error)));
    }
    struct stat st {};
    if (fstat(fd.get(), &st) != 0) cannot_be_written(path, errno);
    check_kind_and_owner(path, st);
    if (lock_file(fd.get()) == Lock::taken)
      throw InUseError(fmt::format("{}: another run is writing it", path));
    // Another run may have given the file another name before it was locked.
    if (is_named(fd.get(), path)) return fd;
  }
}

Recognizer has_one_of(std::vector<std::string> texts) {
  return [texts = std::move(texts)](int fd) {
    const std::string head = head_of(fd);
    return std::any_of(texts.begin(), texts.end(),
                       [&](const std::string& t) { return head.find(t) != head.npos; });
  };
}

bool is_own(int fd, std::string_view mark, const Recognizer& recognizer) {
  const std::string head = head_of(fd);
  const bool is_small = head.size() < kSearched;
  return head.starts_with(mark) || mark.starts_with(head) ||
         (is_small && zeros_of(head) == head.size()) || (recognizer && recognizer(fd));
}

void refuse_foreign(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  const std::string head = fd ? head_of(fd.get()) : std::string();
  if (constexpr std::size_t kPage = 4096;  // [bytes]
      !head.empty() && zeros_of(head) >= std::min(kPage, head.size()))
    throw RunError(fmt::format(
        "{}: begins with zeros, as files do whose writing a power failure ended; if it is of an "
        "earlier run, remove it",
        path));
  throw RunError(
      fmt::format("{}: this exists already and is not melflow's; it would be written over: give it "
                  "another name, or write elsewhere",
                  path));
}

void refuse_unfinished(const std::string& path) {
  throw RunError(
      fmt::format("{}: an interrupted run left this for the next one to complete, and a dry run "
                  "changes nothing; run the same command without --dry-run first",
                  path));
}

UniqueFd create_own(const std::string& path, std::string_view mark, const Recognizer& recognizer,
                    bool* is_unlocked) {
  for (;;) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (fd) {
      const Lock lock = lock_file(fd.get());
      if (lock == Lock::taken) throw InUseError(fmt::format("{}: another run is writing it", path));
      if (is_unlocked != nullptr) *is_unlocked = lock == Lock::unsupported;
      if (is_named(fd.get(), path)) return fd;
      continue;
    }
    if (errno != EEXIST) cannot_be_written(path, errno);
    const UniqueFd old = open_locked(path);
    if (!old) continue;
    if (!is_own(old.get(), mark, recognizer)) refuse_foreign(path);
    if (::unlink(path.c_str()) != 0) cannot_be_written(path, errno);
  }
}

}  // namespace melflow
