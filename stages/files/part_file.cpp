#include "stages/files/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>  // renameat2
#include <cstring>

#include <fmt/format.h>

#include "stages/files/undo_file.h"
#include "stages/files/whole_io.h"

namespace melflow {
namespace {

// 0 or why not. Some file systems do not know RENAME_NOREPLACE.
int renamed(const std::string& from, const std::string& to, unsigned flags) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0) return 0;
  if (errno == EINVAL && ::access(to.c_str(), F_OK) != 0 && ::rename(from.c_str(), to.c_str()) == 0)
    return 0;
  return errno;
}

}  // namespace

PartFile::PartFile(std::string target, std::string stage, Existing existing)
    : target_(std::move(target)),
      part_(target_ + ".part"),
      stage_(std::move(stage)),
      existing_(existing) {
  const std::size_t slash = target_.rfind('/');
  folder_ = slash == target_.npos ? "." : slash == 0 ? "/" : target_.substr(0, slash);
  struct stat st {};
  if (stat(folder_.c_str(), &st) != 0 || !S_ISDIR(st.st_mode))
    throw RunError(
        fmt::format("{}: there is no folder {}; make it first (mkdir -p) or write "
                    "elsewhere ({}.path)",
                    target_, folder_, stage_));
  recover(target_);
  if (existing_ == Existing::extend) {
    open_target();
    return;
  }
  if (stat(target_.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode))
      throw RunError(fmt::format("{}: is a folder; {}.path takes a file name", target_, stage_));
    if (existing_ == Existing::refuse)
      throw RunError(fmt::format(
          "{}: exists already; remove it, write elsewhere, set overwrite: true on {}, or "
          "go on with it (melflow update)",
          target_, stage_));
  }
  open_part();
  // Only what an earlier run left: ext4 takes a file that was ever cut to nothing for one that is
  // being replaced, and allocates all of it when it is closed (0.5 s for 1.2 GB).
  if (fstat(fd_.get(), &st) != 0 || (st.st_size > 0 && ftruncate(fd_.get(), 0) != 0))
    fail("cannot be written", errno);
}

PartFile::~PartFile() {
  if (settled_) return;
  if (!extends()) {
    ::unlink(part_.c_str());
    return;
  }
  try {
    fd_ = {};  // and its lock
    recover(target_);
  } catch (const RunError&) {
    // What is needed for it is still there: the next one tries again.
  }
}

// It keeps its name until save().
void PartFile::open_target() {
  fd_ = UniqueFd(::open(target_.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd_) throw RunError(fmt::format("{}: cannot be written: {}", target_, std::strerror(errno)));
  if (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0)
    throw RunError(fmt::format("{}: another program is using it", target_));
  // A run that makes it anew has its .part locked; one that ended needs it no more.
  const UniqueFd part(::open(part_.c_str(), O_RDWR | O_CLOEXEC));
  if (!part) return;
  if (flock(part.get(), LOCK_EX | LOCK_NB) != 0)
    throw RunError(fmt::format("{}: another run is writing it", part_));
  ::unlink(part_.c_str());
}

void PartFile::save(std::uint64_t head, std::uint64_t tail, bool sync) {
  struct stat st {};
  if (fstat(fd_.get(), &st) != 0) fail("cannot be read back", errno);
  UndoFile::write(target_, fd_.get(), head, tail, static_cast<std::uint64_t>(st.st_size), sync);
  if (const int error = renamed(target_, part_, RENAME_NOREPLACE); error != 0) {
    UndoFile::remove(target_);
    fail("cannot be given that name", error);
  }
  saved_ = true;
  if (sync) flush_folder();
}

void PartFile::recover(const std::string& target) {
  if (!UndoFile::exists(target)) return;
  const std::string part = target + ".part";
  const UniqueFd file(::open(part.c_str(), O_RDWR | O_CLOEXEC));
  if (!file && errno != ENOENT)
    throw RunError(fmt::format("{}: an update of it was interrupted, and {} cannot be opened: {}",
                               target, part, std::strerror(errno)));
  // Without a .part nothing was written yet, or all of it, unless somebody is about to.
  const UniqueFd whole(file ? -1 : ::open(target.c_str(), O_RDONLY | O_CLOEXEC));
  if (const int fd = file ? file.get() : whole.get(); fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0)
    throw RunError(fmt::format("{}: another run is writing it", file ? part : target));
  if (file) {
    UndoFile::apply(target, file.get());
    if (::rename(part.c_str(), target.c_str()) != 0)
      throw RunError(
          fmt::format("{}: cannot be given its name again: {}", target, std::strerror(errno)));
  }
  UndoFile::remove(target);
}

// Another run may give the file that is opened here its final name before it is locked: then it is
// that run's result and not to be touched.
void PartFile::open_part() {
  struct stat mine {
  }, named{};
  do {
    fd_ = UniqueFd(::open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!fd_) throw RunError(fmt::format("{}: cannot be written: {}", part_, std::strerror(errno)));
    if (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0)
      throw RunError(fmt::format("{}: another run is writing it", part_));
    if (fstat(fd_.get(), &mine) != 0) fail("cannot be written", errno);
  } while (stat(part_.c_str(), &named) != 0 || named.st_ino != mine.st_ino);
}

void PartFile::fail(const std::string& what, int error) const {
  if (error == ENOSPC || error == EDQUOT)
    throw RunError(
        fmt::format("{}: the disk is full ({}); {}. Free some space or write elsewhere ({}.path)",
                    part_, std::strerror(error),
                    extends() ? what_is_left() : "the unfinished file is removed", stage_));
  throw RunError(fmt::format("{}: {}: {}", part_, what, std::strerror(error)));
}

void PartFile::put(int fd, const void* data, std::size_t bytes, std::uint64_t at) const {
  if (const int error = write_whole(fd, data, bytes, at); error != 0)
    fail("cannot be written", error);
}

void PartFile::get(int fd, void* data, std::size_t bytes, std::uint64_t at) const {
  if (const int error = read_whole(fd, data, bytes, at); error != 0)
    fail("cannot be read back", error);
}

void PartFile::cut(std::uint64_t bytes) const {
  if (ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) fail("cannot be completed", errno);
}

void PartFile::flush() const {
  if (fdatasync(fd_.get()) != 0)
    throw RunError(fmt::format("{}: cannot be brought to disk: {}; {}", target_,
                               std::strerror(errno), what_is_left()));
}

void PartFile::flush_folder() const {
  const UniqueFd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || fsync(folder.get()) != 0)
    throw RunError(
        fmt::format("{}: its name cannot be brought to disk: {}", target_, std::strerror(errno)));
}

void PartFile::keep() {
  fd_ = {};
  if (extends()) recover(target_);
  settled_ = true;
}

void PartFile::publish(bool sync) {
  if (extends() && !saved_) return;  // nothing was written
  // Complete and too good to be removed, whatever happens now; one that is extended is made what it
  // was instead.
  settled_ = !extends();
  if (sync) flush();
  const UniqueFd file = std::move(fd_);  // its lock would keep readers out
  const int error = renamed(part_, target_, overwrites() ? 0 : RENAME_NOREPLACE);
  if (error != 0)
    throw RunError(fmt::format("{}: cannot be given its name: {}; {}", target_,
                               std::strerror(error), what_is_left()));
  settled_ = true;
  if (sync) flush_folder();
  if (extends()) UndoFile::remove(target_);
}

std::string PartFile::what_is_left() const {
  return extends() ? "it is made what it was before the update" : "the complete file is " + part_;
}

}  // namespace melflow
