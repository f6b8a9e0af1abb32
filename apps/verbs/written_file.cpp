#include "apps/verbs/written_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/files/own_file.h"

namespace melflow {
namespace {

int write_through(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

[[noreturn]] void fail(const std::string& path, int error) {
  throw RunError(fmt::format("{}: cannot be written: {}", path, std::strerror(error)));
}

}  // namespace

WrittenFile::WrittenFile(std::string path, const std::vector<std::string>& inputs)
    : path_(without_links(std::move(path))) {
  for (const std::string& input : inputs)
    if (is_same_file(path_, input))
      throw RunError(
          fmt::format("{}: this file is read and would be replaced; write to another", path_));
  struct stat st {};
  const bool is_there = stat(path_.c_str(), &st) == 0;
  if (is_there && S_ISDIR(st.st_mode)) fail(path_, EISDIR);
  if (const std::string folder = folder_of(path_); !is_there && ::access(folder.c_str(), F_OK) != 0)
    throw RunError(
        fmt::format("{}: cannot be written: there is no folder {}; make it, or write "
                    "elsewhere",
                    path_, folder));
  const bool is_whole = !is_there || S_ISREG(st.st_mode);
  // Where no file can be made beside it, an existing file is written in place.
  if (is_whole && (!is_there || ::access(folder_of(path_).c_str(), W_OK) == 0)) {
    part_ = path_ + ".part";
    fd_ = create_own(part_, "melflow", has_one_of({"melflow"}));
  } else if (::access(path_.c_str(), W_OK) != 0) {
    fail(path_, errno);
  }
}

WrittenFile::~WrittenFile() {
  if (fd_) ::unlink(part_.c_str());
}

void WrittenFile::write(std::string_view bytes) {
  if (std::exchange(is_over_, true)) return;
  if (!fd_) {
    const UniqueFd through(::open(path_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    int error = through ? write_through(through.get(), bytes) : errno;
    if (error == 0) error = close_error(through.get());
    if (error != 0) fail(path_, error);
    return;
  }
  int error = write_through(fd_.get(), bytes);
  if (error == 0) error = close_error(fd_.get());
  if (error == 0) error = rename_file(part_, path_, 0);
  if (error != 0) fail(path_, error);
  fd_ = {};
}

}  // namespace melflow
