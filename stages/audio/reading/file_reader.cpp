#include "stages/audio/reading/file_reader.h"

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace melflow {
namespace {

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder, not a file";
  if (S_ISFIFO(mode)) return "a FIFO, not a file";
  if (S_ISSOCK(mode)) return "a socket, not a file";
  return "a device, not a file";
}

ItemError changed(const FileRef& file, std::uint64_t size) {
  return ItemError::failed(
      fmt::format("changed while it was read: {} bytes when listed, {} now", file.size, size));
}

}  // namespace

int FileReader::flags() const {
  // O_NONBLOCK: a FIFO among the files must not block the run until somebody writes to it.
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  const bool noatime = settings_.noatime && !noatime_refused_.load(std::memory_order_relaxed);
  return noatime ? flags | O_NOATIME : flags;
}

bool FileReader::retry(int error, int flags) const {
  if (error != EPERM || (flags & O_NOATIME) == 0) return false;
  noatime_refused_.store(true, std::memory_order_relaxed);
  return true;
}

UniqueFd FileReader::open(const std::string& path, int& error) const {
  for (;;) {
    const int flags = this->flags();
    UniqueFd fd(::open(path.c_str(), flags));
    error = fd ? 0 : errno;
    if (error == 0 || !retry(error, flags)) return fd;
  }
}

ItemError FileReader::open_error(const FileRef& file, int error) {
  struct stat st {};
  if (error == ENOENT && lstat(file.path.c_str(), &st) == 0 && S_ISLNK(st.st_mode))
    return ItemError::failed("is a link that leads nowhere");
  if (error == ENOENT) return ItemError::failed("does not exist (any more)");
  if (error == ENXIO || error == ENODEV) return ItemError::skipped("is a socket or a device");
  if (error == ELOOP) return ItemError::failed("is a link that leads in a circle");
  return read_error(error);
}

ItemError FileReader::read_error(int error) {
  return ItemError::failed(fmt::format("cannot be read: {}", std::strerror(error)));
}

ItemError FileReader::shorter(const RawBytes& bytes, std::uint64_t got) {
  return ItemError::failed(
      fmt::format("changed while it was read: {} bytes when opened, {} now", bytes.size, got));
}

std::optional<ItemError> FileReader::check_unchanged(int fd, const FileState& before) {
  struct stat st {};
  if (fstat(fd, &st) != 0) return read_error(errno);
  if (FileState(st).is_same_content(before)) return std::nullopt;
  return ItemError::failed(
      "changed while it was read: it was written to, so that its samples may "
      "be of two recordings");
}

Result<std::shared_ptr<RawBytes>> FileReader::admit(std::shared_ptr<const FileRef> file,
                                                    UniqueFd& fd, BufferPool& pool,
                                                    FileState& before) const {
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return read_error(errno);
  if (!S_ISREG(st.st_mode)) return ItemError::skipped("is " + kind_of(st.st_mode));
  const auto size = static_cast<std::uint64_t>(st.st_size);
  if (size == 0) return ItemError::failed("empty file (0 bytes)");
  auto out = std::make_shared<RawBytes>();
  out->size = size;
  before = FileState(st);
  out->window = window();
  if (size > settings_.whole) {
    if (file->size <= settings_.whole) return changed(*file, size);
    advise(fd.get());
    out->fd = std::move(fd);
  } else {
    // Only as much memory as was admitted may be held.
    if (size > file->size) return changed(*file, size);
    if (size > settings_.buffer) advise(fd.get());
    out->data = pool.lease(size);
  }
  out->file = std::move(file);
  return out;
}

std::size_t FileReader::window() const {
  return std::min<std::size_t>(settings_.buffer, settings_.whole);
}

std::optional<Result<std::shared_ptr<const RawBytes>>> FileReader::unread(
    const std::shared_ptr<const FileRef>& file) const {
  if (!file->problem.empty()) return ItemError::failed(std::string(file->problem));
  if (!file->stored) return std::nullopt;
  auto out = std::make_shared<RawBytes>();
  out->window = window();
  out->file = file;
  return std::shared_ptr<const RawBytes>(std::move(out));
}

void FileReader::advise(int fd) const {
  if (settings_.advise == Advise::none) return;
  posix_fadvise(
      fd, 0, 0,
      settings_.advise == Advise::sequential ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_WILLNEED);
}

}  // namespace melflow
