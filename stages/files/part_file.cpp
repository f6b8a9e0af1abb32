#include "stages/files/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>  // RENAME_NOREPLACE
#include <cstring>

#include <fmt/format.h>

#include "stages/files/own_file.h"
#include "stages/files/publication.h"
#include "stages/files/undo_file.h"
#include "stages/files/whole_io.h"

namespace melflow {

void PartFile::check(const std::string& target, const std::string& stage, Existing existing) {
  const std::string folder = folder_of(target);
  struct stat st {};
  if (stat(folder.c_str(), &st) != 0 || !S_ISDIR(st.st_mode))
    throw RunError(
        fmt::format("{}: there is no folder {}; make it first (mkdir -p) or write "
                    "elsewhere (option path of the {} node)",
                    target, folder, stage));
  if (existing != Existing::refuse && has_name(target + ".replaced"))
    refuse_foreign(target + ".replaced");
  if (stat(target.c_str(), &st) != 0) return;
  if (S_ISDIR(st.st_mode))
    throw RunError(fmt::format("{}: this is a folder; {}.path takes a file name", target, stage));
  if (!S_ISREG(st.st_mode))
    throw RunError(
        fmt::format("{}: this is a {}, not a file; {}.path takes the name of a file, which is "
                    "written beside it and gets its name when it is complete",
                    target,
                    S_ISFIFO(st.st_mode)   ? "FIFO"
                    : S_ISSOCK(st.st_mode) ? "socket"
                                           : "device",
                    stage));
  if (existing == Existing::refuse)
    throw RunError(fmt::format(
        "{}: exists already; remove it, write elsewhere, set overwrite: true in the {} node, or "
        "go on with it (melflow update)",
        target, stage));
}

PartFile::PartFile(const std::string& target, std::string stage, const Opening& opening,
                   Recognizer completed)
    : target_(without_links(target)),
      part_(target_ + ".part"),
      stage_(std::move(stage)),
      completed_(std::move(completed)),
      existing_(opening.existing),
      settled_(opening.resumes) {
  recover(target_);
  check(target_, stage_, existing_);
  if (existing_ == Existing::extend || opening.resumes) {
    opening.resumes ? open_part() : open_target();
    return;
  }
  fd_ = create_own(part_, kMark, completed_, &is_unlocked_);
  if (const int error = write_whole(fd_.get(), kMark.data(), kMark.size(), 0); error != 0) {
    ::unlink(part_.c_str());
    fail("cannot be written", error);
  }
}

PartFile::~PartFile() {
  if (settled_) return;
  if (!extends()) {
    ::unlink(part_.c_str());
    return;
  }
  try {
    fd_ = {};  // releases its lock, too
    recover(target_);
  } catch (const RunError&) {
    // The undo file is still there, so the next PartFile tries again.
  }
}

void PartFile::open_part() {
  fd_ = open_locked(part_);
  if (!fd_) throw RunError(fmt::format("{}: there is no such file to go on with", part_));
}

// The file keeps its name until save().
void PartFile::open_target() {
  fd_ = UniqueFd(::open(target_.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd_) throw RunError(fmt::format("{}: cannot be written: {}", target_, std::strerror(errno)));
  const Lock lock = lock_file(fd_.get());
  if (lock == Lock::taken)
    throw InUseError(fmt::format("{}: another program is using it", target_));
  is_unlocked_ = lock == Lock::unsupported;
  // A run that recreates the target has its .part locked; one that ended needs it no more.
  const UniqueFd part = open_locked(part_);
  if (!part) return;
  if (!is_own(part.get(), kMark, completed_)) refuse_foreign(part_);
  ::unlink(part_.c_str());
}

void PartFile::save(std::uint64_t head, std::uint64_t tail) {
  struct stat st {};
  if (fstat(fd_.get(), &st) != 0) fail("cannot be read back", errno);
  UndoFile::write(target_, fd_.get(), head, tail, static_cast<std::uint64_t>(st.st_size));
  if (const int error = rename_file(target_, part_, RENAME_NOREPLACE); error != 0) {
    UndoFile::remove(target_);
    fail("cannot be given that name", error);
  }
  saved_ = true;
  if (const int error = sync_folder_of(target_); error != 0)
    throw RunError(
        fmt::format("{}: its name cannot be synced to disk: {}", part_, std::strerror(error)));
}

void PartFile::recover(const std::string& path, bool may_change) {
  const std::string target = without_links(path);
  if (!UndoFile::exists(target)) return;
  if (!may_change) refuse_unfinished(target + ".undo");
  // Where only names are missing, the file is complete; the names of this pipeline's outputs have
  // been completed by now.
  if (const std::string commit = Publication::waiting(target); !commit.empty()) {
    if (!open_locked(commit)) return recover(path);  // its run has just completed them
    throw RunError(fmt::format(
        "{0}: a run of several outputs was interrupted before they all had their names "
        "({1}); run its pipeline again, which completes them, or remove {1} to have {0} "
        "restored",
        target, commit));
  }
  const std::string part = target + ".part";
  const UniqueFd file = open_locked(part);
  // Without a .part, nothing or everything has been written, unless another run is about to begin.
  const UniqueFd whole = file ? UniqueFd() : open_locked(target);
  UndoFile::check(target);
  if (file) {
    if (has_name(target))
      throw RunError(
          fmt::format("{0}: this file exists, and so does {0}.part, which was that file when an "
                      "update of it was interrupted: move {0} away to have it restored, or "
                      "remove {0}.part and {0}.undo to do without it",
                      target));
    UndoFile::apply(target, file.get());
    if (const int error = rename_file(part, target, RENAME_NOREPLACE); error != 0)
      throw RunError(
          fmt::format("{}: cannot be given its name again: {}", target, std::strerror(error)));
  }
  UndoFile::remove(target);
}

void PartFile::fail(const std::string& what, int error) const {
  const char* left = extends() ? "; it is restored to its state before the update" : "";
  if (error == ENOSPC || error == EDQUOT)
    throw RunError(
        fmt::format("{}: the disk is full ({}){}. Free some space or write elsewhere (option path "
                    "of the {} node)",
                    part_, std::strerror(error), left, stage_));
  if (error == EFBIG)
    throw RunError(
        fmt::format("{}: {}: {}{}. No file may be larger here: raise the limit (ulimit -f), or "
                    "write to another file system (option path of the {} node)",
                    part_, what, std::strerror(error), left, stage_));
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

bool PartFile::try_get(void* data, std::size_t bytes, std::uint64_t at) const {
  return read_whole(fd_.get(), data, bytes, at) == 0;
}

std::uint64_t PartFile::size() const {
  struct stat st {};
  if (fstat(fd_.get(), &st) != 0) fail("cannot be looked at", errno);
  return static_cast<std::uint64_t>(st.st_size);
}

void PartFile::cut(std::uint64_t bytes) const {
  if (ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) fail("cannot be completed", errno);
}

void PartFile::complete_writes(bool sync) const {
  if (sync && fdatasync(fd_.get()) != 0) fail("cannot be brought to disk", errno);
  if (const int error = close_error(fd_.get()); error != 0) fail("cannot be written", error);
}

void PartFile::remove() {
  ::unlink(part_.c_str());
  settled_ = true;
}

void PartFile::keep() {
  if (extends()) {
    fd_ = {};
    recover(target_);
  } else {
    complete_writes(false);
    fd_ = {};
  }
  settled_ = true;
}

}  // namespace melflow
