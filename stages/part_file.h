// A file that has its name only when it is complete: until then it is `<target>.part`, locked, and
// removed with its owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "pipeline/problem.h"
#include "stages/raii/unique_fd.h"

namespace melflow {

class PartFile {
 public:
  /// Creates the `.part` file; `stage` stands in messages before ".path". Throws RunError when the
  /// target exists and `overwrite` is off, the folder is missing or not writable, or another run is
  /// writing there.
  PartFile(std::string target, std::string stage, bool overwrite);
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  /// Removes the `.part` file, unless it has its name or is to be kept.
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
  /// Leaves the `.part` file behind as it is.
  virtual void keep();

 protected:
  [[noreturn]] void fail(const std::string& what, int error) const;
  void put(int fd, const void* data, std::size_t bytes, std::uint64_t at) const;
  void get(int fd, void* data, std::size_t bytes, std::uint64_t at) const;
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  /// Names in the folder, too.
  void flush_folder() const;
  [[nodiscard]] bool overwrites() const { return overwrite_; }

 private:
  void open_part();

  std::string target_, part_, folder_, stage_;
  bool overwrite_;
  bool settled_ = false;
  UniqueFd fd_;
};

}  // namespace melflow
