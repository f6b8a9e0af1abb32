// The .npy output while it is being written: `<target>.part` with rows at their final place, and
// two more for its index (stages/npy_layout.h).
//
// The length of the header does not depend on the number of rows, so rows are written from byte
// kDataOffset on and the header last. A set of three is complete when its rows have their name:
// they get it last (files/publication).
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
  /// A page: the rows can be mapped without what is before them, and read past the page cache.
  static constexpr std::uint64_t kDataOffset = 4096;
  /// Where there is none, all of the file: numpy before 2.0 cannot map nothing behind a page.
  static constexpr std::uint64_t kLeastHeader = 128;

  /// `target` ends in ".npy". Throws RunError as PartFile does, for any of the three.
  NpyFile(const std::string& target, NumberType type, std::size_t values_per_row,
          Existing existing);

  [[nodiscard]] static std::string header(std::span<const std::uint64_t> shape, NumberType type);
  /// Completes the three `.part` files.
  void make_npy(std::span<const std::uint64_t> shape, const OutputIndex& index);
  /// The rows last.
  [[nodiscard]] std::vector<PartFile*> parts() override { return {&index_, &document_, this}; }

 private:
  PartFile index_, document_;
};

}  // namespace melflow
