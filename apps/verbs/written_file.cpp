#include "apps/verbs/written_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/plan/plan.h"
#include "stages/corpus/file_list_options.h"
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

// The canonical path of a file that need not exist.
std::filesystem::path place_of(const std::string& path) {
  std::error_code error;
  return std::filesystem::weakly_canonical(std::filesystem::absolute(without_links(path)), error);
}

}  // namespace

bool has_name_of_recording(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::vector<std::string> all = FileListOptions().include;
  return !ending.empty() && std::find(all.begin(), all.end(), "**/*" + ending) != all.end();
}

std::vector<std::string> files_made(const Plan& plan) {
  std::vector<std::string> out;
  for (const PlanNode& n : plan.nodes)
    out.insert(out.end(), n.resources.files_made.begin(), n.resources.files_made.end());
  return out;
}

WrittenFile::WrittenFile(std::string path, const char* mark, const std::vector<std::string>& inputs)
    : path_(without_links(std::move(path))), mark_(mark) {
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
  check_replaced();
  if (!is_there && has_name_of_recording(path_))
    throw RunError(
        fmt::format("{}: this is the name of a recording, which a run over its folder would list; "
                    "give it another ending",
                    path_));
  // Where no file can be made beside it, an existing file is written in place.
  if (is_whole && (!is_there || ::access(folder_of(path_).c_str(), W_OK) == 0)) {
    part_ = path_ + ".document.part";  // PATH.part may be that of an output
    fd_ = create_own(part_, "melflow", has_one_of({"melflow"}));
  } else if (::access(path_.c_str(), W_OK) != 0) {
    fail(path_, errno);
  }
}

WrittenFile::~WrittenFile() { give_up(); }

void WrittenFile::give_up() {
  if (fd_) ::unlink(part_.c_str());
  fd_ = {};
  is_over_ = true;
}

void WrittenFile::check_replaced() const {
  struct stat st {};
  if (*mark_ == '\0' || stat(path_.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return;
  const UniqueFd old(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!old || !is_own(old.get(), mark_, has_one_of({mark_}))) refuse_foreign(path_);
}

void WrittenFile::keep_off(const std::vector<std::string>& outputs) {
  const std::filesystem::path place = place_of(path_);
  for (const std::string& output : outputs) {
    if (!is_same_file(path_, output) && place_of(output) != place) continue;
    give_up();
    throw RunError(fmt::format(
        "{}: this run writes its output there, which would be replaced; write to another", path_));
  }
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
  if (error == 0) check_replaced();
  if (error == 0) error = rename_file(part_, path_, 0);
  if (error != 0) fail(path_, error);
  fd_ = {};
}

}  // namespace melflow
