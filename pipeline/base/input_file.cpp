#include "pipeline/base/input_file.h"

#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/sentences.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

bool is_descriptor(const std::string& path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

}  // namespace

std::string not_a_file(mode_t mode) {
  if (S_ISREG(mode)) return "";
  return fmt::format("a {}, not a file", S_ISDIR(mode)    ? "folder"
                                         : S_ISFIFO(mode) ? "FIFO"
                                         : S_ISSOCK(mode) ? "socket"
                                                          : "device");
}

InputFile::InputFile(std::string path, Pipes pipes) : path_(std::move(path)) {
  do {
    fd_ = ::open(path_.c_str(), kInputFlags);
  } while (fd_ < 0 && errno == EINTR);
  int error = fd_ < 0 ? errno : 0;
  struct stat st {};
  if (error == 0 && ::fstat(fd_, &st) != 0) error = errno;
  // open() fails for a socket.
  if (error == ENXIO && ::stat(path_.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) error = 0;
  if (error != 0) fail(error);
  if (error != 0 || S_ISREG(st.st_mode)) return;
  if (fd_ < 0 || S_ISDIR(st.st_mode) || pipes == Pipes::refused || !is_descriptor(path_)) {
    problem_ = "this is " + not_a_file(st.st_mode);
    error_ = EINVAL;
  } else if (::fcntl(fd_, F_SETFL, 0) != 0) {  // its writer may take its time
    fail(errno);
  }
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void InputFile::fail(int error) {
  error_ = error;
  problem_ = fmt::format("cannot be read: {}", std::strerror(error));
}

std::string InputFile::read(std::size_t most) {
  constexpr std::size_t kPiece = 1 << 16;  // [bytes]; the size of a pipe's content is not known
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
  if (out.size() > most) {
    error_ = EFBIG;
    problem_ = fmt::format("is longer than {} MiB, more than such a file may have", most >> 20);
  }
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

namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostEntries = 10'000;  // of a folder that are considered
constexpr std::size_t kMostNamed = 5;

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

// Returns the names in a folder, sorted; empty if it cannot be listed.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end;
       !error && it != end && out.size() < kMostEntries; it.increment(error))
    out.push_back(it->path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::string near_path(const std::string& path) {
  std::string without_slash = path;
  while (without_slash.size() > 1 && without_slash.back() == '/') without_slash.pop_back();
  const fs::path given(without_slash);
  std::vector<std::string> paths;
  for (const std::string& name : names_in(folder_of(without_slash)))
    paths.push_back((given.parent_path() / name).string());
  const std::string name = given.filename().string();
  std::vector<std::string> names;
  names.reserve(paths.size());
  for (const std::string& p : paths) names.push_back(fs::path(p).filename().string());
  const std::string near = did_you_mean(name, names);
  // Any name would be similar to one of a single letter.
  for (std::size_t i = 0; i < names.size(); ++i)
    if (near == did_you_mean(names[i]) &&
        (given.stem().string().size() > 1 || strcasecmp(names[i].c_str(), name.c_str()) == 0))
      return did_you_mean(excerpt(paths[i], kLongestPath));
  return {};
}

std::string no_such_file(const std::string& path, const std::vector<std::string>& endings) {
  const fs::path folder = folder_of(path);
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return fmt::format("there is no folder {}{}", excerpt(folder.string(), kLongestPath),
                       near_path(folder.string()));
  const std::string message = "there is no such file";
  if (const std::string near = near_path(path); !near.empty()) return message + near;
  const std::string where = folder == "." ? "the current folder" : "its folder";
  std::vector<std::string> named;
  std::size_t others = 0;
  for (const std::string& name : names_in(folder)) {
    const std::string ending = fs::path(name).extension().string();
    if (std::find(endings.begin(), endings.end(), ending) == endings.end()) continue;
    if (named.size() < kMostNamed)
      named.push_back(excerpt(name));
    else
      ++others;
  }
  if (named.empty())
    return fmt::format("{}; {} has no file that ends in {}", message, where,
                       fmt::join(endings, ", "));
  return fmt::format("{}; {} has {}{}", message, where, fmt::join(named, ", "),
                     others > 0 ? fmt::format(" and {} more", others) : "");
}

}  // namespace melflow
