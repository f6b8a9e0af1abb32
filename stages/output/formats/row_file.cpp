#include "stages/output/formats/row_file.h"

#include <cstdint>
#include <mutex>
#include <vector>

#include "stages/output/formats/h5_number_type.h"

namespace melflow {
namespace {

// Datasets of at least this size begin at a multiple of the alignment. HDF5 puts a few KiB before
// the first one, which thus begins at exactly RowFile::kDataOffset.
constexpr hsize_t kAlignedFrom = 32 * 1024;

// A file that an earlier run left has an attribute of melflow's: HDF5 puts it anywhere in a file
// that was closed. A file of chunks has one at the front from the first moment on, since HDF5
// cannot open a file that was not closed.
bool is_melflows(int fd) {
  static const Recognizer is_unfinished = has_one_of({"melflow_"});
  if (is_unfinished(fd)) return true;
  const std::lock_guard lock(hdf5_mutex());
  const QuietHdf5 quiet;
  try {
    Hdf5Descriptor from(fd);
    const Hid file = from.open("an earlier file");
    return H5Aexists(file, "melflow_version") > 0;
  } catch (const RunError&) {
    return false;
  }
}

}  // namespace

RowFile::RowFile(const std::string& target, std::string name, NumberType type,
                 std::size_t values_per_row, const Opening& opening)
    : RowPartFile(target, "hdf5_write", type, values_per_row, kDataOffset, opening, is_melflows),
      name_(std::move(name)) {}

void RowFile::make_hdf5(Shape shape, const Describe& describe, const Check& check) {
  const std::lock_guard lock(hdf5_mutex());
  const QuietHdf5 quiet;
  std::uint64_t data_bytes = size_of(type());
  for (hsize_t n : shape) data_bytes *= n;
  // Earlier contents, such as rows of files that failed late, are removed first.
  std::vector<char> values;
  if (data_bytes >= kAlignedFrom) {
    const std::vector<char> head(kDataOffset, 0);
    put(head.data(), head.size(), 0);
    cut(kDataOffset + data_bytes);
  } else {
    values.resize(data_bytes);
    get(fd(), values.data(), values.size(), kDataOffset);
    cut(0);
  }
  Hdf5Descriptor to(fd());
  written(to, [&] {
    Hid file = to.create(part_path(), kAlignedFrom, kDataOffset);
    {
      Hid rows = make_rows(file, shape, values);
      describe(file, rows);
      rows.close(name_);
    }
    file.close("cannot complete " + part_path());
  });
  read_back(check);
}

void RowFile::read_back(const Check& check) const {
  if (!check) return;
  Hdf5Descriptor from(fd());
  check(from.open(part_path()));
}

Hid RowFile::make_rows(hid_t file, Shape shape, std::span<const char> values) const {
  const Hid space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose,
                  "dataspace");
  const Hid create = without_times(H5P_DATASET_CREATE);
  h5_check(H5Pset_layout(create, H5D_CONTIGUOUS), "layout");
  h5_check(H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY), "allocation");
  h5_check(H5Pset_fill_time(create, H5D_FILL_TIME_NEVER), "fill");
  const Hid type = h5_number_type(this->type());
  Hid rows(H5Dcreate2(file, name_.c_str(), type, space, H5P_DEFAULT, create, H5P_DEFAULT), H5Dclose,
           name_);
  const hsize_t bytes = H5Dget_storage_size(rows);
  if (values.empty() && bytes > 0 && H5Dget_offset(rows) != kDataOffset)
    throw RunError(part_path() +
                   ": this version of HDF5 lays files out in a way melflow does not know");
  if (!values.empty())
    h5_check(H5Dwrite(rows, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), name_);
  return rows;
}

}  // namespace melflow
