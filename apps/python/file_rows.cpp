#include "apps/python/file_rows.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/python/mapped_copy.h"
#include "pipeline/base/problem.h"
#include "stages/files/whole_io.h"

namespace melflow {
namespace {

constexpr const char* kOpenAgain = "open it again when nothing writes it any more";

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

std::vector<std::size_t> shape_of_row(const FeatureFile& file) {
  return {file.shape().begin() + 1, file.shape().end()};
}

}  // namespace

// The chunk that was unpacked last.
struct FileRows::Unpacked final : Scratch {
  ChunkCodec::Scratch codec;
  std::vector<std::byte> packed, chunk;
  std::uint64_t has = ~std::uint64_t{0};
};

FileRows::Opened FileRows::open(const std::string& path) {
  struct stat before {};
  struct stat now {};
  // FeatureFile reports a missing file.
  const bool is_there = ::stat(path.c_str(), &before) == 0;
  FeatureFile file(path);
  if (const std::string flaw = file.flaw(); !flaw.empty()) throw RunError(flaw);
  std::uint64_t bytes = 0;
  UniqueFd fd = open_regular(path, bytes);
  if (!is_there || ::fstat(fd.get(), &now) != 0 || !is_same(before, now))
    throw RunError(fmt::format("{}: was changed while it was opened; {}", path, kOpenAgain));
  std::shared_ptr<FileRows> rows(new FileRows(file, std::move(fd), now));
  return {std::move(file), std::move(rows)};
}

FileRows::FileRows(const FeatureFile& file, UniqueFd fd, const struct stat& state)
    : RowReader(file.type(), shape_of_row(file)),
      path_(file.path()),
      count_(file.rows()),
      places_(file.places()),
      fd_(std::move(fd)),
      state_(state),
      codec_(size_of(file.type()), places_.is_shuffled, places_.is_deflated ? 1 : 0) {
  if (places_.chunk_rows > 0 || count_ == 0) return;
  map_ = MappedRange(fd_.get(), 0, places_.at + count_ * row_bytes());
  if (map_.data() == nullptr)
    throw RunError(fmt::format("{}: cannot be mapped: {}", path_, std::strerror(errno)));
}

std::unique_ptr<RowReader::Scratch> FileRows::scratch() const {
  take_bus_errors();
  return std::make_unique<Unpacked>();
}

std::vector<std::size_t> FileRows::fetch(std::span<const Range>, Scratch&, bool) const {
  take_bus_errors();
  return {};
}

void FileRows::read(const Range& rows, std::byte* to, Scratch& scratch) const {
  auto [first, count] = rows;
  if (count > count_ || first > count_ - count)
    throw RunError(fmt::format("{}: rows {} to {} are asked for, there are {}", path_, first,
                               first + count, count_));
  const std::size_t bytes = row_bytes();
  if (places_.chunk_rows == 0) {
    if (count > 0 &&
        !mapped_copy(to, map_.data() + places_.at + first * bytes, count * bytes, scratch.streams))
      fail(EIO);
    return;
  }
  auto& unpacked = static_cast<Unpacked&>(scratch);
  while (count > 0) {
    const std::uint64_t chunk = first / places_.chunk_rows, at = first % places_.chunk_rows;
    const std::uint64_t n = std::min(count, places_.chunk_rows - at);
    load(chunk, unpacked);
    copy(to, unpacked.chunk.data() + at * bytes, n * bytes, scratch);
    to += n * bytes;
    first += n;
    count -= n;
  }
}

void FileRows::load(std::uint64_t chunk, Unpacked& scratch) const {
  if (scratch.has == chunk) return;
  const RowPlaces::Chunk& at = places_.chunks.at(chunk);
  scratch.has = ~std::uint64_t{0};
  scratch.packed.resize(at.bytes);
  scratch.chunk.resize(places_.chunk_rows * row_bytes());
  if (const int error = read_whole(fd_.get(), scratch.packed.data(), at.bytes, at.at); error != 0)
    fail(error);
  if (!codec_.unpack(scratch.packed, at.filter_mask, scratch.chunk, scratch.codec)) {
    confirm();
    throw RunError(fmt::format("{}: chunk {} of the rows is damaged (melflow verify says more)",
                               path_, chunk));
  }
  scratch.has = chunk;
}

// Usually the file was truncated.
void FileRows::fail(int error) const {
  confirm();
  throw RunError(fmt::format("{}: cannot be read: {}", path_, std::strerror(error)));
}

void FileRows::confirm() const {
  struct stat now {};
  if (::fstat(fd_.get(), &now) != 0)
    throw RunError(fmt::format("{}: {}", path_, std::strerror(errno)));
  if (is_same(state_, now)) return;
  throw RunError(fmt::format(
      "{}: was changed since it was opened, when it had {} bytes (now {}), so that its rows may be "
      "others; {}",
      path_, state_.st_size, now.st_size, kOpenAgain));
}

}  // namespace melflow
