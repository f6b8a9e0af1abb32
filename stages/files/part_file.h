// A file that gets its name only when it is complete: until then it is `<target>.part`, locked, and
// the destructor removes it. files/publication gives several files their names together.
//
// A complete file can also be extended. It is then renamed to `.part`, and the parts of it that may
// be overwritten are copied to `<target>.undo`. From there the destructor, or the next PartFile for
// that target, restores it, even after a crash of the program; after a crash of the machine only
// with `sync`.
//
// A `.part` begins with kMark until it is complete, so that one left by an earlier run can be told
// from another program's file, which is never touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/base/problem.h"
#include "stages/files/own_file.h"
#include "stages/files/unique_fd.h"

namespace melflow {

/// How to treat a target that exists already.
enum class Existing { refuse, replace, extend };

/// How a `.part` file is opened.
struct Opening {
  Existing existing = Existing::refuse;
  /// Continues the file that an interrupted run left, which is known to be this output's; not with
  /// Existing::extend.
  bool resumes = false;
  Opening(Existing how, bool goes_on = false)  // NOLINT: mostly there is nothing else to say
      : existing(how), resumes(goes_on) {}
};

class PartFile {
 public:
  static constexpr std::string_view kMark = "melflow part 1\n";

  /// Creates the `.part` file; or opens one to be continued, which stays in any case; or opens the
  /// target to be extended. Messages have `stage` before ".path". A symbolic link is followed to
  /// its target. `completed` recognizes files of this kind that are complete or were left by a
  /// stopped run. Throws RunError as check() does, and when the folder is not writable, a foreign
  /// file is in the way, another run is writing there, or the file to be continued does not exist.
  PartFile(const std::string& target, std::string stage, const Opening& opening,
           Recognizer completed = {});
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  /// Removes the `.part` file, or restores an extended file, unless it has got its name or keep()
  /// was called.
  virtual ~PartFile();

  /// Checks that the file can be made, without making or removing anything. Throws RunError when
  /// the folder is missing, or the target is no regular file, or exists with Existing::refuse.
  static void check(const std::string& target, const std::string& stage, Existing existing);

  [[nodiscard]] const std::string& target() const { return target_; }
  [[nodiscard]] const std::string& part_path() const { return part_; }
  /// Whether the file system has no locks, so that another run would not be noticed.
  [[nodiscard]] bool is_unlocked() const { return is_unlocked_; }

  /// Writes `bytes` bytes at byte `at`. From any thread. Throws RunError.
  void put(const void* data, std::size_t bytes, std::uint64_t at) const {
    put(fd_.get(), data, bytes, at);
  }
  /// Reads `bytes` bytes at byte `at`, which must have been written. Throws RunError.
  void get(void* data, std::size_t bytes, std::uint64_t at) const {
    get(fd_.get(), data, bytes, at);
  }
  /// As get(), but returns false where the bytes cannot be read.
  [[nodiscard]] bool try_get(void* data, std::size_t bytes, std::uint64_t at) const;
  /// Returns the length of the file [bytes]. Throws RunError.
  [[nodiscard]] std::uint64_t size() const;
  /// Cuts the file off after `bytes` bytes.
  void cut(std::uint64_t bytes) const;
  /// Checks that all writes have succeeded; with `sync`, flushes them first. Throws RunError.
  void complete_writes(bool sync) const;

  /// Leaves the `.part` file behind as it is; a file that was to be extended is restored.
  void keep();
  /// Makes the `.part` file stay when the run fails or the program is interrupted, so that another
  /// run can continue it. Not for a file that is to be extended.
  void stay() { settled_ = true; }
  /// Removes the `.part` file. Not for a file that is to be extended.
  void remove();

  /// Restores the file at `path` after a program was interrupted while extending it. Throws
  /// RunError when another run still extends it, it cannot be restored, or the names of that run's
  /// outputs have to be completed first (Publication); also where there is anything to restore and
  /// not `may_change`.
  static void recover(const std::string& path, bool may_change = true);

 protected:
  [[noreturn]] void fail(const std::string& what, int error) const;
  void put(int fd, const void* data, std::size_t bytes, std::uint64_t at) const;
  void get(int fd, void* data, std::size_t bytes, std::uint64_t at) const;
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool extends() const { return existing_ == Existing::extend; }
  /// Saves the bytes before `head` and from `tail` on of a file that is to be extended, so that
  /// they may be overwritten; to be called before the first write. They are on disk when it
  /// returns.
  void save(std::uint64_t head, std::uint64_t tail);

 private:
  friend class Publication;

  void open_part();
  void open_target();
  void settle() { settled_ = true; }  // from now on this object does not remove the .part file
  void close() { fd_ = {}; }          // its lock would keep readers out
  [[nodiscard]] bool is_unchanged() const { return extends() && !saved_; }

  std::string target_, part_, stage_;
  Recognizer completed_;
  Existing existing_;
  bool is_unlocked_ = false;
  bool saved_ = false;  // the file to be extended is called .part, and has an undo file
  bool settled_ = false;
  UniqueFd fd_;
};

}  // namespace melflow
