#include "stages/output/formats/chunked_row_file.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "stages/output/formats/h5_number_type.h"

namespace melflow {

// A complete chunk on its way into the file; it is over when that failed, too.
struct ChunkedRowFile::Packing {
  Packing(ChunkedRowFile& file, std::int64_t index) : file_(file), index_(index) {}
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;
  ~Packing() {
    const std::lock_guard lock(file_.mutex_);
    file_.packing_.erase(index_);
    file_.packed_.notify_all();
  }

 private:
  ChunkedRowFile& file_;
  std::int64_t index_;
};

namespace {

constexpr const char* kUnfinished = "melflow_part";

auto lease_scratch(ChunkSpace& space) {
  return space.scratch.lease([] { return std::make_unique<ChunkCodec::Scratch>(); });
}

std::size_t product(const std::vector<hsize_t>& shape) {
  std::size_t n = 1;
  for (const hsize_t axis : shape) n *= axis;
  return n;
}
}  // namespace

// Rows come nearly in order: a thread is at one chunk, and between what two of them write another
// one is begun; at the end of every file the last one waits for rows. A thread that packs has a copy
// with the bytes in another order and one that is compressed.
std::size_t ChunkSpace::most(std::size_t chunk_bytes, int level, int threads, std::size_t files) {
  constexpr std::size_t fast = 512 << 10, thorough = 10 << 20;  // of libdeflate's, from level 10 on
  const auto n = static_cast<std::size_t>(threads);
  const std::size_t packing = level == 0 ? 0 : 2 * chunk_bytes + (level < 10 ? fast : thorough);
  return (2 * n + files) * BufferPool::rounded(chunk_bytes) + n * packing;
}

ChunkedRowFile::ChunkedRowFile(const std::string& target, std::string name, NumberType type,
                               std::vector<hsize_t> row_shape, Existing existing,
                               const ChunkSettings& settings)
    : RowFile(target, std::move(name), type, product(row_shape), existing),
      settings_(settings),
      row_shape_(std::move(row_shape)),
      codec_(size_of(type), settings.shuffle, settings.level),
      to_(fd()) {
  create();
}

ChunkedRowFile::~ChunkedRowFile() {
  const std::lock_guard lock(hdf5_mutex());
  const QuietHdf5 quiet;
  to_.abandon();  // what HDF5 still has: the file is complete, or removed
  rows_ = {};
  file_ = {};
}

void ChunkedRowFile::create() {
  const std::lock_guard lock(hdf5_mutex());
  const QuietHdf5 quiet;
  file_ = to_.create(part_path());
  std::vector<hsize_t> shape{0}, most{H5S_UNLIMITED}, chunk{static_cast<hsize_t>(settings_.rows)};
  for (const hsize_t axis : row_shape_) {
    shape.push_back(axis);
    most.push_back(axis);
    chunk.push_back(axis);
  }
  const auto rank = static_cast<int>(shape.size());
  const Hid space(H5Screate_simple(rank, shape.data(), most.data()), H5Sclose, "dataspace");
  const Hid create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "dataset creation");
  h5_check(H5Pset_chunk(create, rank, chunk.data()), "chunks");
  h5_check(H5Pset_fill_time(create, H5D_FILL_TIME_NEVER), "fill");
  if (settings_.shuffle) h5_check(H5Pset_shuffle(create), "shuffle");
  if (settings_.level > 0)
    h5_check(H5Pset_deflate(create, static_cast<unsigned>(std::min(settings_.level, 9))),
             "deflate");
  const Hid type = h5_number_type(this->type());
  rows_ = Hid(H5Dcreate2(file_, name().c_str(), type, space, H5P_DEFAULT, create, H5P_DEFAULT),
              H5Dclose, name());
  // HDF5 writes over PartFile::kMark; should the program be ended, this is known instead.
  const Hid nothing(H5Screate(H5S_NULL), H5Sclose, kUnfinished);
  const Hid mark(H5Acreate2(file_, kUnfinished, H5T_STD_I8LE, nothing, H5P_DEFAULT, H5P_DEFAULT),
                 H5Aclose, kUnfinished);
  written(to_, [&] { h5_check(H5Fflush(file_, H5F_SCOPE_GLOBAL), "cannot write " + part_path()); });
}

std::shared_ptr<ChunkedRowFile::Chunk> ChunkedRowFile::new_chunk() const {
  return std::make_shared<Chunk>(settings_.space->chunks, settings_.rows, row_bytes());
}

void ChunkedRowFile::copy_rows(const RowRange& range, std::byte* to) const {
  const std::size_t n = static_cast<std::size_t>(range.count) * values_per_row();
  if (range.type == type())
    std::memcpy(to, range.values, n * size_of(type()));
  else
    from_float({static_cast<const float*>(range.values), n}, type(), to);
}

void ChunkedRowFile::write(std::span<const RowRange> ranges) {
  for (const RowRange& range : ranges) {
    check_type(range);
    write_range(range);
  }
}

void ChunkedRowFile::write_range(RowRange range) {
  const std::int64_t end = range.row + range.count;
  while (range.row < end) {
    const std::int64_t index = chunk_of(range.row);
    range.count = std::min(end, (index + 1) * settings_.rows) - range.row;
    std::shared_ptr<Chunk> chunk;
    {
      const std::lock_guard lock(mutex_);
      std::shared_ptr<Chunk>& place = open_[index];
      if (!place) place = new_chunk();
      chunk = place;
      written_ = std::max(written_, range.row + range.count);
    }
    const std::int64_t first = range.row - index * settings_.rows;
    copy_rows(range, chunk->bytes().data() + static_cast<std::size_t>(first) * row_bytes());
    bool is_full = false;
    {
      const std::lock_guard lock(mutex_);
      chunk->mark(first, first + range.count, true);
      is_full = chunk->filled == settings_.rows;
      if (is_full) {
        open_.erase(index);
        packing_.insert(index);
      }
    }
    if (is_full) {
      const Packing packing(*this, index);
      put_chunk(index, *chunk);
    }
    range.row += range.count;
    range.values = static_cast<const std::byte*>(range.values) +
                   static_cast<std::size_t>(range.count) * values_per_row() * size_of(range.type);
  }
}

void ChunkedRowFile::put_chunk(std::int64_t index, const Chunk& chunk) {
  const auto scratch = lease_scratch(*settings_.space);
  const ChunkCodec::Packed packed = codec_.pack(chunk.bytes(), *scratch);
  const std::lock_guard lock(hdf5_mutex());
  const QuietHdf5 quiet;
  written(to_, [&] {
    std::vector<hsize_t> offset(1 + row_shape_.size(), 0);
    offset[0] = static_cast<hsize_t>(index) * static_cast<hsize_t>(settings_.rows);
    if (extent_ < (index + 1) * settings_.rows) {
      extent_ = std::max((index + 1) * settings_.rows, 2 * extent_);
      std::vector<hsize_t> shape{static_cast<hsize_t>(extent_)};
      shape.insert(shape.end(), row_shape_.begin(), row_shape_.end());
      h5_check(H5Dset_extent(rows_, shape.data()), "cannot extend " + name());
    }
    h5_check(H5Dwrite_chunk(rows_, H5P_DEFAULT, packed.filter_mask, offset.data(),
                            packed.bytes.size(), packed.bytes.data()),
             "cannot write " + part_path());
  });
}

void ChunkedRowFile::load_chunk(std::int64_t index, Chunk& chunk) {
  const auto scratch = lease_scratch(*settings_.space);
  std::vector<std::byte> packed;
  std::uint32_t filter_mask = 0;
  {
    const std::lock_guard lock(hdf5_mutex());
    const QuietHdf5 quiet;
    std::vector<hsize_t> offset(1 + row_shape_.size(), 0);
    offset[0] = static_cast<hsize_t>(index) * static_cast<hsize_t>(settings_.rows);
    hsize_t bytes = 0;
    h5_check(H5Dget_chunk_storage_size(rows_, offset.data(), &bytes), "cannot read back " + name());
    packed.resize(bytes);
    h5_check(H5Dread_chunk(rows_, H5P_DEFAULT, offset.data(), &filter_mask, packed.data()),
             "cannot read back " + name());
  }
  if (!codec_.unpack(packed, filter_mask, chunk.bytes(), *scratch))
    throw RunError(part_path() + ": a chunk that was just written cannot be read back");
}

void ChunkedRowFile::roll_back(std::int64_t row) {
  const std::int64_t index = chunk_of(row);
  const std::int64_t first = row - index * settings_.rows;
  std::unique_lock lock(mutex_);
  if (row >= written_) return;
  written_ = row;
  open_.erase(open_.upper_bound(index), open_.end());
  if (first == 0) {
    open_.erase(index);
    return;
  }
  // Rows of complete files that share the chunk may still be on their way into it, or it on its way
  // into the file.
  packed_.wait(lock, [&] { return !packing_.contains(index); });
  if (const auto it = open_.find(index); it != open_.end()) {
    it->second->mark(first, settings_.rows, false);
    return;
  }
  const auto chunk = new_chunk();
  open_[index] = chunk;
  lock.unlock();
  load_chunk(index, *chunk);
  chunk->mark(0, first, true);
}

void ChunkedRowFile::Chunk::mark(std::int64_t first, std::int64_t end, bool is_there) {
  for (std::int64_t r = first; r < end; ++r) {
    if (has[static_cast<std::size_t>(r)] == is_there) continue;
    has[static_cast<std::size_t>(r)] = is_there;
    filled += is_there ? 1 : -1;
  }
}

void ChunkedRowFile::flush_open() {
  for (const auto& [index, chunk] : open_) {
    const auto filled = static_cast<std::size_t>(chunk->filled) * row_bytes();
    std::ranges::fill(chunk->bytes().subspan(filled), std::byte{0});
    put_chunk(index, *chunk);
  }
  open_.clear();
}

// Through HDF5's own filters: only files that failed late are moved over.
void ChunkedRowFile::transfer(std::int64_t row, std::int64_t count, std::vector<std::byte>& values,
                              bool is_read) {
  std::vector<hsize_t> start{static_cast<hsize_t>(row)}, extent{static_cast<hsize_t>(count)};
  for (const hsize_t axis : row_shape_) {
    start.push_back(0);
    extent.push_back(axis);
  }
  const Hid space(H5Dget_space(rows_), H5Sclose, name());
  h5_check(
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr),
      name());
  const Hid memory(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
                   H5Sclose, name());
  const Hid type = h5_number_type(this->type());
  values.resize(static_cast<std::size_t>(count) * row_bytes());
  h5_check(is_read ? H5Dread(rows_, type, memory, space, H5P_DEFAULT, values.data())
                   : H5Dwrite(rows_, type, memory, space, H5P_DEFAULT, values.data()),
           "cannot move rows of " + name());
}

void ChunkedRowFile::read(std::int64_t row, std::int64_t count, float* values) {
  flush_open();
  const std::lock_guard lock(hdf5_mutex());
  const QuietHdf5 quiet;
  std::vector<std::byte> bytes;
  transfer(row, count, bytes, true);
  to_float(bytes.data(), bytes.size() / size_of(type()), type(), values);
}

void ChunkedRowFile::move_rows(std::int64_t from, std::int64_t to, std::int64_t count) {
  flush_open();
  const std::lock_guard lock(hdf5_mutex());
  const QuietHdf5 quiet;
  std::vector<std::byte> values;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t n = std::min(settings_.rows, count - done);
    transfer(from + done, n, values, true);
    written(to_, [&] { transfer(to + done, n, values, false); });
    done += n;
  }
}

void ChunkedRowFile::make_hdf5(Shape shape, const Describe& describe, const Check& check) {
  flush_open();
  const std::lock_guard lock(hdf5_mutex());
  const QuietHdf5 quiet;
  written(to_, [&] {
    h5_check(H5Dset_extent(rows_, shape.data()), name());
    h5_check(H5Adelete(file_, kUnfinished), kUnfinished);
    describe(file_, rows_);
    rows_.close(name());
    file_.close("cannot complete " + part_path());
  });
  read_back(check);
}

}  // namespace melflow
