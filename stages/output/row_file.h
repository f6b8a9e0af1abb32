// The HDF5 output while it is being written: rows at their final place in `<target>.part`,
// everything else of the HDF5 file added around them at the end.
//
// HDF5 cannot grow a contiguous dataset, and the number of rows is not known before the last file
// is decoded. So rows are written by RowPartFile from byte kDataOffset on; at the end HDF5 makes a
// file of the right shape whose dataset begins at the same place and is never written, and its
// other bytes are copied around the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "stages/output/row_part_file.h"
#include "stages/raii/hdf5.h"

namespace melflow {

class RowFile : public RowPartFile {
 public:
  static constexpr std::uint64_t kDataOffset = 64 * 1024;
  /// Throws RunError as PartFile does.
  RowFile(std::string target, NumberType type, std::size_t values_per_row, Existing existing);

  using Shape = std::span<const hsize_t>;
  using Describe = std::function<void(hid_t file, hid_t rows)>;
  /// Makes it an HDF5 file with /mel of `shape`; `describe` adds what else belongs into it.
  virtual void make_hdf5(Shape shape, const Describe& describe);

 protected:
  /// Throws fail() for a full disk, and `e` for anything else.
  [[noreturn]] void fail_of_hdf5(const RunError& e) const;

 private:
  void make_shell(const std::string& path, Shape shape, bool in_place,
                  const Describe& describe) const;
  Hid make_rows(hid_t file, Shape shape, bool in_place) const;
  void copy_around(const std::string& from, std::uint64_t data_bytes) const;
};

}  // namespace melflow
