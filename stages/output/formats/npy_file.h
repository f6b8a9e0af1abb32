// The .npy output while it is being written: `<target>.part` with rows at their final position, and
// two more files for its index (npy_layout.h).
//
// The length of the header does not depend on the number of rows, so rows are written from byte
// kDataOffset on and the header last. The file of rows gets its name last (files/publication), so
// once it has its name, all three files are complete.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stages/files/part_file.h"
#include "stages/output/formats/npy_layout.h"
#include "stages/output/formats/row_part_file.h"

namespace melflow {

class NpyFile final : public RowPartFile {
 public:
  /// The first byte of the rows: one page, so that they can be mapped alone, and read with
  /// O_DIRECT.
  static constexpr std::uint64_t kDataOffset = 4096;
  /// The length of a file without rows: numpy before 2.0 cannot map an empty array behind a page.
  static constexpr std::uint64_t kLeastHeader = 128;

  /// `target` ends in ".npy". With Existing::extend the file of rows is extended, and the other two
  /// are recreated. Throws RunError as PartFile does, for any of the three files.
  NpyFile(const std::string& target, NumberType type, std::size_t values_per_row,
          const Opening& opening);

  /// The type as numpy writes it, quoted, for npy_header().
  [[nodiscard]] static const char* descr(NumberType type);
  [[nodiscard]] static std::string header(std::span<const std::uint64_t> shape, NumberType type);
  /// Completes the three `.part` files.
  void make_npy(std::span<const std::uint64_t> shape, const OutputIndex& index);
  /// All three files, the rows last.
  [[nodiscard]] std::vector<PartFile*> parts() override {
    return {&index_.index, &index_.document, this};
  }

 private:
  NpyIndexFiles index_;
};

}  // namespace melflow
