#include "apps/python/file_rows.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pipeline/problem.h"
#include "stages/files/whole_io.h"

namespace melflow {

// The chunk that was read last.
struct FileRows::Unpacked final : Scratch {
  ChunkCodec::Scratch codec;
  std::vector<std::byte> packed, chunk;
  std::uint64_t has = ~std::uint64_t{0};
};

FileRows::FileRows(Layout layout)
    : RowReader(layout.type, layout.row_shape),
      layout_(std::move(layout)),
      codec_(size_of(layout_.type), layout_.is_shuffled, layout_.is_deflated ? 1 : 0) {
  fd_ = UniqueFd(::open(layout_.path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat st {};
  if (!fd_ || fstat(fd_.get(), &st) != 0)
    throw RunError(fmt::format("{}: {}", layout_.path, std::strerror(errno)));
  const auto size = static_cast<std::uint64_t>(st.st_size);
  const std::uint64_t end = layout_.at + layout_.rows * row_bytes();
  bool is_cut = layout_.chunk_rows == 0 && size < end;
  for (const Chunk& c : layout_.chunks) is_cut = is_cut || c.at + c.bytes > size;
  if (is_cut)
    throw RunError(layout_.path +
                   ": this file is shorter than its rows; it was cut off, or is being written");
  if (layout_.chunk_rows > 0 || layout_.rows == 0) return;
  void* map = mmap(nullptr, end, PROT_READ, MAP_SHARED, fd_.get(), 0);
  if (map == MAP_FAILED)
    throw RunError(fmt::format("{}: cannot be mapped: {}", layout_.path, std::strerror(errno)));
  map_ = static_cast<const std::byte*>(map);
  map_bytes_ = end;
}

FileRows::~FileRows() {
  if (map_ != nullptr) munmap(const_cast<std::byte*>(map_), map_bytes_);
}

std::unique_ptr<RowReader::Scratch> FileRows::scratch() const {
  return std::make_unique<Unpacked>();
}

void FileRows::read(const Range& rows, std::byte* to, Scratch& scratch) const {
  auto [first, count] = rows;
  if (count > layout_.rows || first > layout_.rows - count)
    throw RunError(fmt::format("{}: rows {} to {} are asked for, there are {}", layout_.path, first,
                               first + count, layout_.rows));
  const std::size_t bytes = row_bytes();
  if (layout_.chunk_rows == 0) {
    copy(to, map_ + layout_.at + first * bytes, count * bytes, scratch);
    return;
  }
  auto& unpacked = static_cast<Unpacked&>(scratch);
  while (count > 0) {
    const std::uint64_t chunk = first / layout_.chunk_rows, at = first % layout_.chunk_rows;
    const std::uint64_t n = std::min(count, layout_.chunk_rows - at);
    load(chunk, unpacked);
    copy(to, unpacked.chunk.data() + at * bytes, n * bytes, scratch);
    to += n * bytes;
    first += n;
    count -= n;
  }
}

void FileRows::load(std::uint64_t chunk, Unpacked& scratch) const {
  if (scratch.has == chunk) return;
  const Chunk& at = layout_.chunks.at(chunk);
  scratch.has = ~std::uint64_t{0};
  scratch.packed.resize(at.bytes);
  scratch.chunk.resize(layout_.chunk_rows * row_bytes());
  if (const int error = read_whole(fd_.get(), scratch.packed.data(), at.bytes, at.at); error != 0)
    throw RunError(fmt::format("{}: cannot be read: {}", layout_.path, std::strerror(error)));
  if (!codec_.unpack(scratch.packed, at.filter_mask, scratch.chunk, scratch.codec))
    throw RunError(fmt::format("{}: chunk {} of the rows is damaged (melflow verify says more)",
                               layout_.path, chunk));
  scratch.has = chunk;
}

}  // namespace melflow
