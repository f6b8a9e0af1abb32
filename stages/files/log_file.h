// An append-only file of records: all that an interrupted program appended is there when it starts
// again, except for a record that was cut off.
//
//   14 bytes   "melflow log 1\n"
//   a record   its length as uint32, its bytes, and XXH3 of them, seeded with that of the record
//              before, as uint64; all little-endian
//
// So a record counts only when it and all before it are what was written.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "stages/files/unique_fd.h"

namespace melflow {

class LogFile {
 public:
  /// Makes an empty log; one that an earlier run left is removed first. Throws RunError as
  /// create_own() does.
  static std::unique_ptr<LogFile> create(const std::string& path);
  /// Opens a log, locked, before its first record; null where there is none. Throws RunError when
  /// it is not melflow's or another run has it.
  static std::unique_ptr<LogFile> open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Reads the next record; false at the end, and where what follows is not whole.
  bool next(std::string& record);
  /// A place between two records, to come back to.
  struct Place {
    std::uint64_t at = 0, hash = 0;
  };
  [[nodiscard]] Place place() const { return place_; }
  void go_to(const Place& place) { place_ = place; }
  /// Cuts off what is behind the present place. Throws RunError.
  void cut() const;

  /// Adds a record at the present place, which is the end. Throws RunError.
  void append(std::string_view record);
  /// Waits until all records are on disk. Throws RunError.
  void sync() const;
  /// Waits until its name is on disk. Throws RunError.
  void sync_name() const;
  void remove() const { ::unlink(path_.c_str()); }

 private:
  LogFile(std::string path, UniqueFd fd);
  [[noreturn]] void fail(const char* what, int error) const;

  std::string path_;
  UniqueFd fd_;
  Place place_;
};

}  // namespace melflow
