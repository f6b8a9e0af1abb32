#include "stages/output/row_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "stages/output/h5_number_type.h"

namespace melflow {
namespace {

// Datasets of at least this size begin at a multiple of the alignment. What HDF5 puts before the
// first one takes a few KiB, so that one begins at exactly RowFile::kDataOffset.
constexpr hsize_t kAlignedFrom = 32 * 1024;

}  // namespace

RowFile::RowFile(std::string target, NumberType type, std::size_t values_per_row, Existing existing)
    : RowPartFile(std::move(target), "hdf5_write", type, values_per_row, kDataOffset, existing) {}

void RowFile::make_hdf5(Shape shape, const Describe& describe) {
  const QuietHdf5 quiet;
  std::uint64_t data_bytes = size_of(type());
  for (hsize_t n : shape) data_bytes *= n;
  const bool in_place = data_bytes >= kAlignedFrom;
  const std::string shell = part_path() + ".meta";
  struct Remover {
    const std::string& path;
    ~Remover() { ::unlink(path.c_str()); }
  } const remover{shell};
  try {
    make_shell(shell, shape, in_place, describe);
  } catch (const RunError& e) {
    fail_of_hdf5(e);
  }
  copy_around(shell, in_place ? data_bytes : 0);
}

void RowFile::fail_of_hdf5(const RunError& e) const {
  if (std::string_view(e.what()).find(std::strerror(ENOSPC)) != std::string_view::npos)
    fail("", ENOSPC);
  throw e;
}

void RowFile::make_shell(const std::string& path, Shape shape, bool in_place,
                         const Describe& describe) const {
  const Hid access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "file access");
  h5_check(H5Pset_alignment(access, kAlignedFrom, kDataOffset), "alignment");
  const Hid file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose,
                 "cannot create " + path);
  {
    const Hid rows = make_rows(file, shape, in_place);
    describe(file, rows);
  }
  // Closing writes what is left, but its errors would go unseen.
  h5_check(H5Fflush(file, H5F_SCOPE_GLOBAL), "cannot write " + path);
}

Hid RowFile::make_rows(hid_t file, Shape shape, bool in_place) const {
  const Hid space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose,
                  "dataspace");
  const Hid create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "dataset creation");
  h5_check(H5Pset_layout(create, H5D_CONTIGUOUS), "layout");
  h5_check(H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY), "allocation");
  h5_check(H5Pset_fill_time(create, H5D_FILL_TIME_NEVER), "fill");
  const Hid type = h5_number_type(this->type());
  Hid rows(H5Dcreate2(file, "mel", type, space, H5P_DEFAULT, create, H5P_DEFAULT), H5Dclose,
           "/mel");
  if (in_place && H5Dget_offset(rows) != kDataOffset)
    throw RunError(part_path() +
                   ": this version of HDF5 lays files out in a way melflow does not know");
  if (!in_place) {
    std::vector<char> values(H5Dget_storage_size(rows));
    get(fd(), values.data(), values.size(), kDataOffset);
    if (!values.empty())
      h5_check(H5Dwrite(rows, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "/mel");
  }
  return rows;
}

void RowFile::copy_around(const std::string& from, std::uint64_t data_bytes) const {
  const UniqueFd shell(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat st {};
  if (!shell || fstat(shell.get(), &st) != 0) fail("cannot be completed", errno);
  const auto size = static_cast<std::uint64_t>(st.st_size);
  std::vector<char> piece(1 << 20);
  for (std::uint64_t at = 0; at < size;) {
    if (data_bytes > 0 && at == kDataOffset) at += data_bytes;
    if (at >= size) break;
    const std::uint64_t end = data_bytes > 0 && at < kDataOffset ? kDataOffset : size;
    const std::size_t n = std::min<std::uint64_t>(piece.size(), std::min(end, size) - at);
    get(shell.get(), piece.data(), n, at);
    put(piece.data(), n, at);
    at += n;
  }
  // Rows of files that failed late, or of a small dataset, may lie behind the end.
  cut(size);
}

}  // namespace melflow
