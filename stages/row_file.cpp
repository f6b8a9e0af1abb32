#include "stages/row_file.h"

#include <fcntl.h>
#include <stdio.h>  // renameat2
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "pipeline/problem.h"
#include "stages/float16.h"
#include "stages/raii/hdf5.h"

namespace melflow {
namespace {

// Datasets of at least this size begin at a multiple of the alignment. What HDF5 puts before the
// first one takes a few KiB, so that one begins at exactly kDataOffset.
constexpr hsize_t kDataOffset = 64 * 1024;
constexpr hsize_t kAlignedFrom = 32 * 1024;

constexpr std::size_t kMostJoined = 256;  // pieces of one pwritev

}  // namespace

RowFile::RowFile(std::string target, RowType type, std::size_t values_per_row, bool overwrite)
    : target_(std::move(target)),
      part_(target_ + ".part"),
      type_(type),
      values_per_row_(values_per_row),
      overwrite_(overwrite) {
  const std::size_t slash = target_.rfind('/');
  folder_ = slash == target_.npos ? "." : slash == 0 ? "/" : target_.substr(0, slash);
  struct stat st {};
  if (stat(folder_.c_str(), &st) != 0 || !S_ISDIR(st.st_mode))
    throw RunError(
        fmt::format("{}: there is no folder {}; make it first (mkdir -p) or write "
                    "elsewhere (hdf5_write.path)",
                    target_, folder_));
  if (stat(target_.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode))
      throw RunError(fmt::format("{}: is a folder; hdf5_write.path takes a file name", target_));
    if (!overwrite_)
      throw RunError(
          fmt::format("{}: exists already; remove it, write elsewhere, or set "
                      "overwrite: true on hdf5_write",
                      target_));
  }
  open_part();
  // Only what an earlier run left: ext4 takes a file that was ever cut to nothing for one that is
  // being replaced, and allocates all of it when it is closed (0.5 s for 1.2 GB).
  if (fstat(fd_.get(), &st) != 0 || (st.st_size > 0 && ftruncate(fd_.get(), 0) != 0))
    fail("cannot be written", errno);
}

RowFile::~RowFile() {
  if (!settled_) ::unlink(part_.c_str());
}

// Another run may give the file that is opened here its final name before it is locked: then it is
// that run's result and not to be touched.
void RowFile::open_part() {
  struct stat mine {
  }, named{};
  do {
    fd_ = UniqueFd(::open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!fd_) throw RunError(fmt::format("{}: cannot be written: {}", part_, std::strerror(errno)));
    if (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0)
      throw RunError(fmt::format("{}: another run is writing it", part_));
    if (fstat(fd_.get(), &mine) != 0) fail("cannot be written", errno);
  } while (stat(part_.c_str(), &named) != 0 || named.st_ino != mine.st_ino);
}

std::size_t RowFile::row_bytes() const {
  return values_per_row_ * (type_ == RowType::float32 ? 4 : 2);
}

void RowFile::fail(const std::string& what, int error) const {
  if (error == ENOSPC || error == EDQUOT)
    throw RunError(
        fmt::format("{}: the disk is full ({}); the unfinished file is removed. Free "
                    "some space or write elsewhere (hdf5_write.path)",
                    part_, std::strerror(error)));
  throw RunError(fmt::format("{}: {}: {}", part_, what, std::strerror(error)));
}

void RowFile::put(int fd, const void* data, std::size_t bytes, std::uint64_t at) const {
  const auto* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::pwrite(fd, p, bytes, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot be written", errno);
    p += n;
    at += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
}

void RowFile::get(int fd, void* data, std::size_t bytes, std::uint64_t at) const {
  auto* p = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::pread(fd, p, bytes, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("cannot be read back", n < 0 ? errno : EIO);
    p += n;
    at += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
}

void RowFile::write(std::span<const RowRange> ranges) {
  if (type_ == RowType::float16) {
    for (const RowRange& range : ranges) put_halves(range);
    return;
  }
  while (!ranges.empty()) {
    std::size_t n = 1;
    while (n < ranges.size() && n < kMostJoined &&
           ranges[n].row == ranges[n - 1].row + ranges[n - 1].count)
      ++n;
    put_joined(ranges.first(n));
    ranges = ranges.subspan(n);
  }
}

// Neighbours of float32 in one call.
void RowFile::put_joined(std::span<const RowRange> ranges) const {
  std::array<iovec, kMostJoined> pieces;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    pieces[i].iov_base = const_cast<float*>(ranges[i].values);  // which pwritev leaves alone
    pieces[i].iov_len = static_cast<std::size_t>(ranges[i].count) * row_bytes();
    bytes += pieces[i].iov_len;
  }
  std::uint64_t at = place_of(ranges.front().row);
  ssize_t n = 0;
  do {
    n = ::pwritev(fd_.get(), pieces.data(), static_cast<int>(ranges.size()),
                  static_cast<off_t>(at));
  } while (n < 0 && errno == EINTR);
  if (n < 0) fail("cannot be written", errno);
  if (static_cast<std::size_t>(n) == bytes) return;
  // A disk that is nearly full takes a part; the rest says why.
  auto skip = static_cast<std::size_t>(n);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::size_t done = std::min(skip, pieces[i].iov_len);
    put(fd_.get(), static_cast<const char*>(pieces[i].iov_base) + done, pieces[i].iov_len - done,
        at + done);
    at += pieces[i].iov_len;
    skip -= done;
  }
}

void RowFile::put_halves(const RowRange& range) const {
  std::uint64_t at = place_of(range.row);
  const float* values = range.values;
  std::size_t left = static_cast<std::size_t>(range.count) * values_per_row_;
  std::array<std::uint16_t, 16384> half;
  while (left > 0) {
    const std::size_t n = std::min(left, half.size());
    to_float16({values, n}, half.data());
    put(fd_.get(), half.data(), n * 2, at);
    values += n;
    at += n * 2;
    left -= n;
  }
}

std::uint64_t RowFile::place_of(std::int64_t row) const {
  return kDataOffset + static_cast<std::uint64_t>(row) * row_bytes();
}

void RowFile::move_rows(std::int64_t from, std::int64_t to, std::int64_t count) {
  std::vector<char> piece(1 << 20);
  const std::uint64_t bytes = static_cast<std::uint64_t>(count) * row_bytes();
  for (std::uint64_t done = 0; done < bytes;) {
    const std::size_t n = std::min<std::uint64_t>(piece.size(), bytes - done);
    get(fd_.get(), piece.data(), n, place_of(from) + done);
    put(fd_.get(), piece.data(), n, place_of(to) + done);
    done += n;
  }
}

void RowFile::spill(std::uint64_t at, const void* data, std::size_t bytes) {
  if (!spill_) {
    spill_ = UniqueFd(::open(folder_.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
    if (!spill_) {  // a file system without O_TMPFILE
      std::string name = part_ + ".XXXXXX";
      spill_ = UniqueFd(mkostemp(name.data(), O_CLOEXEC));
      if (!spill_) fail("no temporary file can be made beside it", errno);
      unlink(name.c_str());
    }
  }
  put(spill_.get(), data, bytes, at);
}

void RowFile::unspill(std::uint64_t at, void* data, std::size_t bytes) const {
  get(spill_.get(), data, bytes, at);
}

void RowFile::make_hdf5(Shape shape, const Describe& describe) {
  const QuietHdf5 quiet;
  std::uint64_t data_bytes = type_ == RowType::float32 ? 4 : 2;
  for (hsize_t n : shape) data_bytes *= n;
  const bool in_place = data_bytes >= kAlignedFrom;
  const std::string shell = part_ + ".meta";
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

Hid RowFile::row_type() const {
  Hid type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose, "type");
  if (type_ == RowType::float16) {  // as h5py and numpy write and expect it: IEEE 754 binary16
    h5_check(H5Tset_fields(type, 15, 10, 5, 0, 10), "float16");
    h5_check(H5Tset_size(type, 2), "float16");
    h5_check(H5Tset_ebias(type, 15), "float16");
  }
  return type;
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
  const Hid type = row_type();
  Hid rows(H5Dcreate2(file, "mel", type, space, H5P_DEFAULT, create, H5P_DEFAULT), H5Dclose,
           "/mel");
  if (in_place && H5Dget_offset(rows) != kDataOffset)
    throw RunError(part_ + ": this version of HDF5 lays files out in a way melflow does not know");
  if (!in_place) {
    std::vector<char> values(H5Dget_storage_size(rows));
    get(fd_.get(), values.data(), values.size(), kDataOffset);
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
    put(fd_.get(), piece.data(), n, at);
    at += n;
  }
  // Rows of files that failed late, or of a small dataset, may lie behind the end.
  if (ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) fail("cannot be completed", errno);
}

void RowFile::keep() {
  settled_ = true;
  fd_ = {};
}

void RowFile::publish(bool sync) {
  settled_ = true;  // it is complete: too good to be removed, whatever happens now
  const UniqueFd file = std::move(fd_);  // its lock would keep readers out
  const std::string kept = "; the complete file is " + part_;
  if (sync && fdatasync(file.get()) != 0)
    throw RunError(
        fmt::format("{}: cannot be brought to disk: {}{}", target_, std::strerror(errno), kept));
  int failed = ::renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, target_.c_str(),
                           overwrite_ ? 0 : RENAME_NOREPLACE);
  // Some file systems do not know the flag.
  if (failed != 0 && errno == EINVAL && ::access(target_.c_str(), F_OK) != 0)
    failed = ::rename(part_.c_str(), target_.c_str());
  if (failed != 0)
    throw RunError(
        fmt::format("{}: cannot be given its name: {}{}", target_, std::strerror(errno), kept));
  if (!sync) return;
  const UniqueFd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || fsync(folder.get()) != 0)
    throw RunError(
        fmt::format("{}: its name cannot be brought to disk: {}", target_, std::strerror(errno)));
}

}  // namespace melflow
