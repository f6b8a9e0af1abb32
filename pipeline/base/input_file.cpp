#include "pipeline/base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"

namespace melflow {
namespace {

bool is_descriptor(const std::string& path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") ||
         (path.starts_with("/proc/") && path.find("/fd/") != path.npos);
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "folder";
  if (S_ISFIFO(mode)) return "FIFO";
  return S_ISSOCK(mode) ? "socket" : "device";
}

}  // namespace

InputFile::InputFile(std::string path, Pipes pipes) : path_(std::move(path)) {
  do {
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd_ < 0 && errno == EINTR);
  int error = fd_ < 0 ? errno : 0;
  is_missing_ = error == ENOENT;
  struct stat st {};
  if (error == 0 && ::fstat(fd_, &st) != 0) error = errno;
  // A socket is not opened at all.
  if (error == ENXIO && ::stat(path_.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) error = 0;
  if (error != 0) fail(error);
  if (error != 0 || S_ISREG(st.st_mode)) return;
  if (fd_ < 0 || S_ISDIR(st.st_mode) || pipes == Pipes::refused || !is_descriptor(path_))
    problem_ = fmt::format("this is a {}, not a file", kind_of(st.st_mode));
  else if (::fcntl(fd_, F_SETFL, 0) != 0)  // its writer may take its time
    fail(errno);
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void InputFile::fail(int error) {
  problem_ = fmt::format("cannot be read: {}", std::strerror(error));
}

std::string InputFile::read(std::size_t most) {
  constexpr std::size_t kPiece = 1 << 16;  // [bytes]; a pipe does not say how many there are
  std::string out;
  std::size_t done = 0;
  while (problem_.empty() && done < most) {
    out.resize(std::min(most, done + kPiece));
    const ssize_t n = ::read(fd_, out.data() + done, out.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  out.resize(done);
  return out;
}

std::string InputFile::read_all(std::size_t most) {
  std::string out = read(most + 1);
  if (out.size() > most)
    problem_ = fmt::format("is longer than {} MiB, more than such a file may have", most >> 20);
  require_sound();
  return out;
}

int InputFile::release() {
  require_sound();
  return std::exchange(fd_, -1);
}

void InputFile::require_sound() const {
  if (!problem_.empty()) throw RunError(fmt::format("{}: {}", path_, problem_));
}

}  // namespace melflow
