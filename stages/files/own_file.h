// Files of a run beside its output (`.part`, `.undo`, `.commit`, `.replaced`): made, locked and known again, so that
// nothing of anybody else's is written to or removed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stages/files/unique_fd.h"

namespace melflow {

/// The folder that a path's last name is in.
std::string folder_of(const std::string& path);
/// What the path leads to, through links, whether that is there or not.
std::string without_links(std::string path);
/// There is something of that name, be it a link that leads nowhere. Throws RunError where that cannot be told.
bool has_name(const std::string& path);
/// Both are there, and are one file.
bool is_same_file(const std::string& a, const std::string& b);

/// 0 or the error. `flags` as of renameat2; file systems that do not know RENAME_NOREPLACE are asked first.
int rename_file(const std::string& from, const std::string& to, unsigned flags);
/// Names in the folder of `path` are on disk when it returns. 0 or the error.
int sync_folder_of(const std::string& path);
/// What the system says when a file is closed, which network file systems do when it could not be written after all;
/// `fd` stays open, and keeps its lock. 0 or the error.
int close_error(int fd);

enum class Lock { held, taken, unsupported };
/// Without waiting. Unsupported: the file system has no locks, errno says how.
Lock lock_file(int fd);

/// A regular file of that name, locked as long as it is open: the name is the file's when this returns, and no other
/// run has it. Closed where there is none. Throws RunError where another run has it, and for what is no file.
UniqueFd open_locked(const std::string& path);

/// Whether a file that is complete in its own format was made by melflow. Reads it, and does not throw.
using Recognizer = std::function<bool(int fd)>;
/// One of those texts is in its first 64 KiB.
Recognizer has_one_of(std::vector<std::string> texts);
/// A file that begins with `mark`, is recognized, or has no byte.
bool is_own(int fd, std::string_view mark, const Recognizer& recognizer = {});
/// Throws RunError: something of that name is not melflow's.
[[noreturn]] void refuse_foreign(const std::string& path);

/// A new file, empty and locked. One of ours that is there already, from a run that was ended, is removed; throws
/// RunError for any other, where another run has it, and where nothing can be made. `is_unlocked`: the file system has
/// no locks.
UniqueFd create_own(const std::string& path, std::string_view mark,
                    const Recognizer& recognizer = {}, bool* is_unlocked = nullptr);

}  // namespace melflow
