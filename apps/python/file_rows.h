// Rows of an output: mapped where they are in one piece, else from their chunks.
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
  /// Throws RunError where the program would not use the file either, and where it changes
  /// meanwhile.
  static Opened open(const std::string& path);

  [[nodiscard]] std::unique_ptr<Scratch> scratch() const override;
  [[nodiscard]] std::vector<std::size_t> fetch(std::span<const Range> ranges, Scratch& scratch,
                                               bool is_urgent) const override;
  void read(const Range& rows, std::byte* to, Scratch& scratch) const override;
  /// Looks at size and time of the file, which is one and the same whatever its name becomes.
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
  struct stat state_;  // as it was opened
  ChunkCodec codec_;
  MappedRange map_;  // of rows in one piece
};

}  // namespace melflow
