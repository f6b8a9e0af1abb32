// An append-only file of records. Every record that an interrupted program appended is there when
// it starts again, except for one that was cut off.
//
//   14 bytes   "melflow log 1\n"
//   a record   its length as uint32, its bytes, and their XXH3 as uint64, seeded with the hash of
//              the record before; all little-endian
//
// So a record counts only if it and all before it are intact. Where the highest bit of its length
// is set, the bytes may change at any time, and the hash covers only the length.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "stages/files/mapped_range.h"
#include "stages/files/unique_fd.h"

namespace melflow {

class LogFile {
 public:
  /// Makes an empty log, removing one that an earlier run left. Throws RunError as create_own()
  /// does.
  static std::unique_ptr<LogFile> create(const std::string& path);
  /// Opens a log, locked, before its first record; null where there is none. Throws RunError when
  /// it is not melflow's or another run has it.
  static std::unique_ptr<LogFile> open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Reads the next record; false at the end, and where the next one is damaged or incomplete.
  bool next(std::string& record);
  /// A position between two records, to return to.
  struct Place {
    std::uint64_t at = 0, hash = 0;
  };
  [[nodiscard]] Place place() const { return place_; }
  void go_to(const Place& place) { place_ = place; }
  /// Cuts off everything behind the present position. Throws RunError.
  void cut() const;

  /// Adds a record at the present position, which must be the end. Throws RunError.
  void append(std::string_view record);
  /// Adds a record that begins with `first` and ends with `changing` zero bytes, aligned to 64 in
  /// the file, which may change. Returns them as memory; none where the file system maps no files.
  /// Throws RunError.
  struct Mapped {
    MappedRange mapping;
    std::span<std::byte> bytes;
  };
  Mapped append_changing(char first, std::size_t changing);
  /// Returns the changing bytes of a record that next() read from `place` on.
  static std::string_view changing_of(std::string_view record, const Place& place);
  /// Waits until all records are on disk. Throws RunError.
  void sync() const;
  /// Waits until the log's name is on disk. Throws RunError.
  void sync_name() const;
  void remove() const { ::unlink(path_.c_str()); }

 private:
  LogFile(std::string path, UniqueFd fd);
  void append(std::string_view record, std::uint32_t length);
  [[noreturn]] void fail(const char* what, int error) const;

  std::string path_;
  UniqueFd fd_;
  Place place_;
};

}  // namespace melflow
