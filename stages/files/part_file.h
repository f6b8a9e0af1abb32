// A file that has its name only when it is complete: until then it is `<target>.part`, locked, and
// removed with its owner.
//
// A complete file can be taken up again to be extended. It is called `.part` then, too, and what of
// it may be written over lies in `<target>.undo`: whatever happens, its owner's destructor or the
// next PartFile of that name makes it what it was. (Whatever happens to the program; to the machine
// only with `sync`.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "pipeline/problem.h"
#include "stages/raii/unique_fd.h"

namespace melflow {

/// What becomes of a target that is there already.
enum class Existing { refuse, replace, extend };

class PartFile {
 public:
  /// Creates the `.part` file, or makes the target one; `stage` stands in messages before ".path".
  /// Throws RunError when the target exists and is to be refused, the folder is missing or not
  /// writable, or another run is writing there.
  PartFile(std::string target, std::string stage, Existing existing);
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  /// Removes the `.part` file, or makes it what it was, unless it has its name or is to be kept.
  virtual ~PartFile();

  [[nodiscard]] const std::string& target() const { return target_; }
  [[nodiscard]] const std::string& part_path() const { return part_; }

  /// From any thread. Throws RunError.
  void put(const void* data, std::size_t bytes, std::uint64_t at) const {
    put(fd_.get(), data, bytes, at);
  }
  /// It ends there, whatever was written behind.
  void cut(std::uint64_t bytes) const;
  /// Returns when the system has all of it on disk. Throws RunError.
  void flush() const;

  /// From now on the `.part` file is not this object's to remove.
  void settle() { settled_ = true; }
  /// Gives the file its name; with `sync` returns only when the system has all of it on disk. Where
  /// that fails the complete `.part` file is kept.
  virtual void publish(bool sync);
  /// Leaves the `.part` file behind as it is. One that was to be extended becomes what it was.
  virtual void keep();

  /// Completes what a program that was ended while it extended `target` left undone. Throws
  /// RunError when another run is still at it, or it cannot be done.
  static void recover(const std::string& target);

 protected:
  [[noreturn]] void fail(const std::string& what, int error) const;
  void put(int fd, const void* data, std::size_t bytes, std::uint64_t at) const;
  void get(int fd, void* data, std::size_t bytes, std::uint64_t at) const;
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  /// Names in the folder, too.
  void flush_folder() const;
  [[nodiscard]] bool overwrites() const { return existing_ == Existing::replace; }
  [[nodiscard]] bool extends() const { return existing_ == Existing::extend; }
  /// Before the first write to a file that is to be extended: what is before `head` and from `tail`
  /// on may be written over. Without this nothing may be. With `sync` that is on disk when it
  /// returns.
  void save(std::uint64_t head, std::uint64_t tail, bool sync);

 private:
  void open_part();
  void open_target();
  [[nodiscard]] std::string what_is_left() const;

  std::string target_, part_, folder_, stage_;
  Existing existing_;
  bool saved_ = false;  // to be extended: it is called .part, and has an undo file
  bool settled_ = false;
  UniqueFd fd_;
};

}  // namespace melflow
