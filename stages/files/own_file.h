// Makes, locks and recognizes the files of a run beside its output (`.part`, `.undo`, `.commit`,
// `.replaced`, `.journal`), so that no file of another program or user is trusted, written to or
// removed. They may lie in a folder that others write to: a run goes on only with regular files of
// its own user.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

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

/// Renames a file; returns 0 or the errno. `flags` are those of renameat2; where the file system
/// does not support RENAME_NOREPLACE, checks for an existing `to` first.
int rename_file(const std::string& from, const std::string& to, unsigned flags);
/// Waits until the names in the folder of `path` are on disk. Returns 0 or the errno.
int sync_folder_of(const std::string& path);
/// The error that closing the file would give, by which network file systems report failed writes;
/// 0 without one. `fd` stays open and locked.
int close_error(int fd);

/// Throws RunError where something has that name which is no regular file, belongs to another user
/// than this process acts for (root included), or has a second name by which another file would be
/// changed; with a `mark`, also where it is not melflow's (is_own()). Links are not followed.
void check_side_file(const std::string& path, std::string_view mark = {});

enum class Lock { held, taken, unsupported };
/// Locks a file without waiting. unsupported: the file system has no locks, and errno has its
/// error.
Lock lock_file(int fd);

/// Opens and locks a regular file; the lock is held as long as it is open, and the file still has
/// this name when this returns. An empty UniqueFd when there is no such file. Throws RunError when
/// another run has it, and as check_side_file() does.
UniqueFd open_locked(const std::string& path);

/// Tells by its contents whether a complete file was made by melflow. Reads the file, and does not
/// throw.
using Recognizer = std::function<bool(int fd)>;
/// Recognizes a file that has one of `texts` in its first 64 KiB.
Recognizer has_one_of(std::vector<std::string> texts);
/// Whether a file is melflow's: it begins with `mark`, is recognized, or is empty, or as small as a
/// few zeros, which a power failure leaves of one that was just begun.
bool is_own(int fd, std::string_view mark, const Recognizer& recognizer = {});
/// Throws RunError saying that the file at `path` is not melflow's, or cannot be known as such.
[[noreturn]] void refuse_foreign(const std::string& path);
/// Throws RunError saying that what an interrupted run left at `path` has to be completed first.
[[noreturn]] void refuse_unfinished(const std::string& path);

/// Makes a new file, empty and locked; an old one that is melflow's, left by an interrupted run,
/// is removed first. Throws RunError when another file has that name, another run has it, or it
/// cannot be made. `is_unlocked` is set to whether the file system has no locks.
UniqueFd create_own(const std::string& path, std::string_view mark,
                    const Recognizer& recognizer = {}, bool* is_unlocked = nullptr);

}  // namespace melflow
