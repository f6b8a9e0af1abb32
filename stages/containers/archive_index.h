// Reads the headers of archives. Formats: tar (POSIX.1-1988 ustar, POSIX.1-2001 pax, GNU) and zip
// (PKWARE's APPNOTE 6.3, with Zip64).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stages/containers/archive.h"

namespace melflow {

/// The bytes of an archive, read through a window.
class ArchiveBytes {
 public:
  ArchiveBytes(int fd, std::uint64_t size, const std::string& path)
      : fd_(fd), size_(size), path_(path), window_(std::min<std::uint64_t>(size, 1 << 20)) {}

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Returns the `count` bytes at `at`, fewer at the end of the file; valid until the next call.
  /// `count`: at most a MiB. Throws RunError.
  std::span<const unsigned char> at(std::uint64_t at, std::size_t count);
  /// Throws RunError saying what the file is instead of the `expected` ("a tar archive").
  [[noreturn]] void refuse(const char* expected);

 private:
  int fd_;
  std::uint64_t size_;
  const std::string& path_;
  std::vector<unsigned char> window_;
  std::uint64_t begin_ = 0, last_ = 0;  // of the window; where the last call's bytes ended
  std::size_t have_ = 0;
};

/// Why a member cannot be read whose header is damaged.
inline std::string damaged_header(const std::string& archive) {
  return "its header in the archive is damaged" + cure_of_archive(archive);
}

class TarIndex {
 public:
  TarIndex(Archive& archive, ArchiveBytes& bytes) : archive_(archive), bytes_(bytes) {}
  /// Adds all members. Behind a damaged header it looks for the next one. Throws RunError where
  /// there is no header at all.
  void read();

 private:
  struct Extra {  // what headers before a member say about it
    std::string name, link;
    std::optional<std::uint64_t> size;
    bool is_sparse = false, is_damaged = false;
  };
  void take(std::span<const unsigned char> header, std::uint64_t data, std::uint64_t size);
  void take_pax(std::string_view records);
  std::string text_at(std::uint64_t data, std::uint64_t size);
  void add_links();

  Archive& archive_;
  ArchiveBytes& bytes_;
  Extra extra_;
  struct Link {
    std::string name, to;
  };
  std::vector<Link> links_;
};

class ZipIndex {
 public:
  ZipIndex(Archive& archive, ArchiveBytes& bytes) : archive_(archive), bytes_(bytes) {}
  /// Adds all members of the directory; without a directory, those whose headers are found. Throws
  /// RunError where there are none.
  void read();

 private:
  struct Directory {
    std::uint64_t begin = 0, size = 0, shift = 0;
  };
  std::optional<Directory> find_directory();
  bool read_directory(const Directory& directory);
  void search_headers();

  Archive& archive_;
  ArchiveBytes& bytes_;
};

}  // namespace melflow
