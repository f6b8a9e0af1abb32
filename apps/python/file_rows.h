// Rows of an output: contiguous rows are memory-mapped, others are read from their chunks.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/python/row_reader.h"
#include "stages/files/mapped_range.h"
#include "stages/files/unique_fd.h"
#include "stages/output/formats/chunk_codec.h"
#include "stages/output/formats/feature_file.h"

namespace melflow {

class FileRows final : public RowReader {
 public:
  struct Opened {
    FeatureFile file;
    std::shared_ptr<FileRows> rows;
  };
  /// Opens a file. Throws RunError where the program would refuse it, too, and where it changes
  /// meanwhile.
  static Opened open(const std::string& path);

  [[nodiscard]] std::unique_ptr<Scratch> scratch() const override;
  [[nodiscard]] std::vector<std::size_t> fetch(std::span<const Range> ranges, Scratch& scratch,
                                               bool is_urgent) const override;
  void read(const Range& rows, std::byte* to, Scratch& scratch) const override;
  /// Checks size and time of the opened file, which stays the same file even if it is renamed.
  void confirm() const override;
  [[nodiscard]] bool is_ordered() const override { return places_.chunk_rows > 0; }

 private:
  struct Unpacked;
  FileRows(const FeatureFile& file, UniqueFd fd, const struct stat& state);
  void load(std::uint64_t chunk, Unpacked& scratch) const;
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::uint64_t count_;
  RowPlaces places_;
  UniqueFd fd_;
  struct stat state_;  // when it was opened
  ChunkCodec codec_;
  MappedRange map_;  // of contiguous rows
};

}  // namespace melflow
