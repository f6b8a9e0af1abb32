#include "stages/output/formats/row_part_file.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "stages/files/temporary_file.h"
#include "stages/files/whole_io.h"
#include "stages/output/rows/row_hash.h"

namespace melflow {
namespace {

constexpr std::size_t kMostJoined = 256;  // pieces in one pwritev

}  // namespace

void RowPartFile::check_type(const RowRange& range) const {
  if (range.type != type_ && range.type != NumberType::float32)
    throw std::logic_error(
        fmt::format("rows of {} for a file of {}", to_text(range.type), to_text(type_)));
}

void RowPartFile::write(std::span<const RowRange> ranges) {
  while (!ranges.empty()) {
    check_type(ranges.front());
    std::size_t n = 1;
    if (ranges.front().type != type_) {
      put_converted(ranges.front());
    } else {
      while (n < ranges.size() && n < kMostJoined && ranges[n].type == type_ &&
             ranges[n].row == ranges[n - 1].row + ranges[n - 1].count)
        ++n;
      put_joined(ranges.first(n));
    }
    ranges = ranges.subspan(n);
  }
}

// Writes neighbouring rows that need no conversion in one call.
void RowPartFile::put_joined(std::span<const RowRange> ranges) const {
  std::array<iovec, kMostJoined> pieces;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    pieces[i].iov_base = const_cast<void*>(ranges[i].values);  // pwritev does not change it
    pieces[i].iov_len = static_cast<std::size_t>(ranges[i].count) * row_bytes();
    bytes += pieces[i].iov_len;
  }
  std::uint64_t at = place_of(ranges.front().row);
  ssize_t n = 0;
  do {
    n = ::pwritev(fd(), pieces.data(), static_cast<int>(ranges.size()), static_cast<off_t>(at));
  } while (n < 0 && errno == EINTR);
  if (n < 0) fail("cannot be written", errno);
  if (static_cast<std::size_t>(n) == bytes) return;
  // A disk that is nearly full takes a part; writing the rest reports the error.
  auto skip = static_cast<std::size_t>(n);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::size_t done = std::min(skip, pieces[i].iov_len);
    put(static_cast<const char*>(pieces[i].iov_base) + done, pieces[i].iov_len - done, at + done);
    at += pieces[i].iov_len;
    skip -= done;
  }
}

void RowPartFile::put_converted(const RowRange& range) const {
  std::uint64_t at = place_of(range.row);
  const auto* values = static_cast<const float*>(range.values);
  std::size_t left = static_cast<std::size_t>(range.count) * values_per_row_;
  std::array<std::uint16_t, 16384> half;
  while (left > 0) {
    const std::size_t n = std::min(left, half.size());
    from_float({values, n}, type_, half.data());
    put(half.data(), n * 2, at);
    values += n;
    at += n * 2;
    left -= n;
  }
}

void RowPartFile::read(std::int64_t row, std::int64_t count, float* values) {
  const std::size_t n = static_cast<std::size_t>(count) * values_per_row_;
  if (type_ == NumberType::float32) return get(fd(), values, n * sizeof(float), place_of(row));
  std::vector<std::uint16_t> halves(n);
  get(fd(), halves.data(), n * 2, place_of(row));
  to_float(halves.data(), n, type_, values);
}

// Lets the file systems copy where they can: no byte passes through here, and they may share it.
void RowPartFile::write(std::int64_t row, std::int64_t count, const Elsewhere& from) {
  auto in = static_cast<off_t>(from.at), out = static_cast<off_t>(place_of(row));
  std::uint64_t left = static_cast<std::uint64_t>(count) * row_bytes();
  while (left > 0) {
    const ssize_t n = ::copy_file_range(from.fd, &in, fd(), &out, left, 0);
    if (n > 0) {
      left -= static_cast<std::uint64_t>(n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
      fail("cannot be written", errno);
    break;  // not between these file systems, or reading or writing reports it better
  }
  std::vector<char> piece(std::min<std::uint64_t>(1 << 20, left));
  while (left > 0) {
    const std::size_t n = std::min<std::uint64_t>(piece.size(), left);
    if (const int error = read_whole(from.fd, piece.data(), n, static_cast<std::uint64_t>(in)))
      throw RunError(fmt::format("{}: cannot be read: {}", from.path, std::strerror(error)));
    put(piece.data(), n, static_cast<std::uint64_t>(out));
    in += static_cast<off_t>(n);
    out += static_cast<off_t>(n);
    left -= n;
  }
}

std::int64_t RowPartFile::safe_rows() const {
  const std::uint64_t bytes = size();
  if (bytes < data_offset_) return first_row_;
  return first_row_ + static_cast<std::int64_t>((bytes - data_offset_) / row_bytes());
}

void RowPartFile::resume_at(std::int64_t rows) {
  put(kMark.data(), kMark.size(), 0);
  cut(place_of(rows));
}

std::optional<std::uint64_t> RowPartFile::hash(std::int64_t row, std::int64_t count) const {
  RowHash out;
  std::vector<char> piece(1 << 20);
  const std::uint64_t bytes = static_cast<std::uint64_t>(count) * row_bytes();
  for (std::uint64_t done = 0; done < bytes;) {
    const std::size_t n = std::min<std::uint64_t>(piece.size(), bytes - done);
    if (!try_get(piece.data(), n, place_of(row) + done)) return std::nullopt;
    out.add(piece.data(), n);
    done += n;
  }
  return out.value();
}

std::uint64_t RowPartFile::hash_written(std::int64_t row, std::int64_t count) const {
  const auto out = hash(row, count);
  if (!out) throw RunError(part_path() + ": cannot be read back");
  return *out;
}

void RowPartFile::move_rows(std::int64_t from, std::int64_t to, std::int64_t count) {
  std::vector<char> piece(1 << 20);
  const std::uint64_t bytes = static_cast<std::uint64_t>(count) * row_bytes();
  for (std::uint64_t done = 0; done < bytes;) {
    const std::size_t n = std::min<std::uint64_t>(piece.size(), bytes - done);
    get(fd(), piece.data(), n, place_of(from) + done);
    put(piece.data(), n, place_of(to) + done);
    done += n;
  }
}

void RowPartFile::Spill::put(const void* data, std::size_t bytes, std::uint64_t at) {
  if (!fd_) {
    fd_ = temporary_file_in(folder_of(beside_.target()));
    if (!fd_) beside_.fail("no temporary file can be made beside it", errno);
  }
  beside_.put(fd_.get(), data, bytes, at);
}

void RowPartFile::Spill::get(void* data, std::size_t bytes, std::uint64_t at) const {
  beside_.get(fd_.get(), data, bytes, at);
}

}  // namespace melflow
