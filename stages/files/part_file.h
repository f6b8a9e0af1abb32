// A file that has its name only when it is complete: until then it is `<target>.part`, locked, and
// removed with its owner. Files get their names by files/publication, together.
//
// A complete file can be taken up again to be extended. It is called `.part` then, too, and what of
// it may be written over lies in `<target>.undo`: whatever happens, its owner's destructor or the
// next PartFile of that name makes it what it was. (Whatever happens to the program; to the machine
// only with `sync`.)
//
// A `.part` begins with kMark until it is completed, so that one that an earlier run left is told
// from a file of somebody else's, which is never touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/problem.h"
#include "stages/files/own_file.h"
#include "stages/files/unique_fd.h"

namespace melflow {

/// What becomes of a target that is there already.
enum class Existing { refuse, replace, extend };

class PartFile {
 public:
  static constexpr std::string_view kMark = "melflow part 1\n";

  /// Creates the `.part` file, or makes the target one; `stage` stands in messages before ".path".
  /// A link is followed: what it leads to is the target. `completed` recognizes a file of this
  /// kind that is complete, or that a stopped run left.
  /// Throws RunError as check() does, and when the folder is not writable, something of another's
  /// is in the way, or another run is writing there.
  PartFile(const std::string& target, std::string stage, Existing existing,
           Recognizer completed = {});
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  /// Removes the `.part` file, or makes it what it was, unless it has its name or is to be kept.
  virtual ~PartFile();

  /// Before anything is made or removed: whether there can be such a file. Throws RunError when the
  /// folder is missing, the target is no file, or exists and is to be refused.
  static void check(const std::string& target, const std::string& stage, Existing existing);

  [[nodiscard]] const std::string& target() const { return target_; }
  [[nodiscard]] const std::string& part_path() const { return part_; }
  /// The file system has no locks, so that another run would not be noticed.
  [[nodiscard]] bool is_unlocked() const { return is_unlocked_; }

  /// From any thread. Throws RunError.
  void put(const void* data, std::size_t bytes, std::uint64_t at) const {
    put(fd_.get(), data, bytes, at);
  }
  /// What was written. Throws RunError.
  void get(void* data, std::size_t bytes, std::uint64_t at) const {
    get(fd_.get(), data, bytes, at);
  }
  /// It ends there, whatever was written behind.
  void cut(std::uint64_t bytes) const;
  /// All of it is written as far as the system knows, with `sync` on disk. Throws RunError.
  void complete_writes(bool sync) const;

  /// Leaves the `.part` file behind as it is. One that was to be extended becomes what it was.
  void keep();

  /// Completes what a program that was ended while it extended `target` left undone. Throws
  /// RunError when another run is still at it, or it cannot be done.
  static void recover(const std::string& path);

 protected:
  [[noreturn]] void fail(const std::string& what, int error) const;
  void put(int fd, const void* data, std::size_t bytes, std::uint64_t at) const;
  void get(int fd, void* data, std::size_t bytes, std::uint64_t at) const;
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool extends() const { return existing_ == Existing::extend; }
  /// Before the first write to a file that is to be extended: what is before `head` and from `tail`
  /// on may be written over. Without this nothing may be. With `sync` that is on disk when it
  /// returns.
  void save(std::uint64_t head, std::uint64_t tail, bool sync);

 private:
  friend class Publication;

  void open_target();
  void settle() { settled_ = true; }  // from now on the .part file is not this object's to remove
  void close() { fd_ = {}; }          // its lock would keep readers out
  [[nodiscard]] bool is_unchanged() const { return extends() && !saved_; }

  std::string target_, part_, stage_;
  Recognizer completed_;
  Existing existing_;
  bool is_unlocked_ = false;
  bool saved_ = false;  // to be extended: it is called .part, and has an undo file
  bool settled_ = false;
  UniqueFd fd_;
};

}  // namespace melflow
