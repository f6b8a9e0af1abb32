// Makes, locks and recognizes the files of a run beside its output (`.part`, `.undo`, `.commit`,
// `.replaced`, `.journal`), so that no file of another program or user is trusted, written to or
// removed. They may lie in a folder that others write to, so a run uses only regular files of its
// own user.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/base/problem.h"
#include "stages/files/unique_fd.h"

namespace melflow {

/// The folder that contains the last component of a path.
std::string folder_of(const std::string& path);
/// The path with its symbolic links followed; the file need not exist.
std::string without_links(std::string path);
/// Whether anything has that name, even a link that leads nowhere. Throws RunError when the system
/// cannot tell.
bool has_name(const std::string& path);
/// Whether both paths exist and are the same file.
bool is_same_file(const std::string& a, const std::string& b);

/// Makes a file, or empties one, in a folder to which others may write, too: no link is followed,
/// and a FIFO's reader not waited for. On failure the result is empty, and errno says why.
UniqueFd create_empty(const std::string& path);
/// Renames a file; returns 0 or the errno. `flags` are those of renameat2; where the file system
/// does not support RENAME_NOREPLACE, checks for an existing `to` first.
int rename_file(const std::string& from, const std::string& to, unsigned flags);
/// Waits until the names in the folder of `path` are on disk. Returns 0 or the errno.
int sync_folder_of(const std::string& path);
/// Returns the error that closing the file would return, which is how network file systems report
/// failed writes; 0 without one. `fd` stays open and locked.
int close_error(int fd);

/// Throws RunError where that name is not a regular file, belongs to another user than this process
/// acts for (root included), or is one of several hard links, so that another file would be
/// changed; with a `mark`, also where it is not melflow's (is_own()). Does not follow links.
void check_side_file(const std::string& path, std::string_view mark = {});

/// Thrown when another program has a file locked: the same may succeed later.
class InUseError : public RunError {
 public:
  using RunError::RunError;
};

enum class Lock { held, taken, unsupported };
/// Locks a file without waiting. unsupported: the file system has no locks, and errno has its
/// error.
Lock lock_file(int fd);

/// Opens and locks a regular file; the lock is held while it is open, and on return the file still
/// has this name. Returns an empty UniqueFd when there is no such file. Throws InUseError
/// when another run has it, and RunError as check_side_file() does.
UniqueFd open_locked(const std::string& path);

/// Tells by its contents whether a complete file was made by melflow. Only reads the file, and does
/// not throw.
using Recognizer = std::function<bool(int fd)>;
/// Recognizes a file that has one of `texts` in its first 64 KiB.
Recognizer has_one_of(std::vector<std::string> texts);
/// Whether a file is melflow's: it begins with `mark`, is recognized, is empty, or is a few zeros,
/// which a power failure can leave of a file just begun.
bool is_own(int fd, std::string_view mark, const Recognizer& recognizer = {});
/// Throws RunError saying that the file at `path` is not melflow's, or cannot be recognized.
[[noreturn]] void refuse_foreign(const std::string& path);
/// Throws RunError saying that an interrupted run's files at `path` have to be completed first.
[[noreturn]] void refuse_unfinished(const std::string& path);

/// Makes a new file, empty and locked; first removes an old one that is melflow's, left by an
/// interrupted run. Throws RunError when another file has that name, another run has it, or it
/// cannot be made. `is_unlocked` is set to whether the file system has no locks.
UniqueFd create_own(const std::string& path, std::string_view mark,
                    const Recognizer& recognizer = {}, bool* is_unlocked = nullptr);

}  // namespace melflow
