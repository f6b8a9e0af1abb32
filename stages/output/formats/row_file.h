// The HDF5 output while it is being written: `<target>.part` with rows at their final position,
// around which everything else of the HDF5 file is added at the end.
//
// HDF5 cannot grow a contiguous dataset, and the number of rows is not known before the last file
// is decoded. So rows are written by RowPartFile from byte kDataOffset on; at the end HDF5 makes a
// file of the right shape around them, whose dataset begins at the same place and is never written.
//
// Threads: rows from any, as for RowPartFile; make_hdf5() from one, when all rows are written; it
// holds hdf5_mutex(). Errors: RunError, also where HDF5 lost a write (Hdf5Descriptor).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "stages/output/formats/hdf5_descriptor.h"
#include "stages/output/formats/row_part_file.h"

namespace melflow {

class RowFile : public RowPartFile {
 public:
  static constexpr std::uint64_t kDataOffset = 64 * 1024;
  /// `name`: the name of the dataset of rows. Throws RunError as PartFile does.
  RowFile(const std::string& target, std::string name, NumberType type, std::size_t values_per_row,
          const Opening& opening);

  using Shape = std::span<const hsize_t>;
  using Describe = std::function<void(hid_t file, hid_t rows)>;
  using Check = std::function<void(hid_t file)>;
  /// Makes an HDF5 file with rows of `shape`; `describe` adds everything else, and `check` reads
  /// that back and throws where it differs from what was written. Throws RunError.
  virtual void make_hdf5(Shape shape, const Describe& describe, const Check& check = {});

 protected:
  /// Calls `write`, which uses HDF5 on `to`; throws when a write failed, even where HDF5 reports
  /// success.
  template <class Write>
  void written(const Hdf5Descriptor& to, const Write& write) const {
    try {
      write();
    } catch (const RunError&) {
      if (to.error() == 0) throw;  // else the failed write caused HDF5's error
    }
    if (to.error() != 0) fail("cannot be written", to.error());
  }
  void read_back(const Check& check) const;
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  Hid make_rows(hid_t file, Shape shape, std::span<const char> values) const;

  std::string name_;
};

}  // namespace melflow
