#include "stages/output/formats/chunked_row_file.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pipeline/report/stage_meter.h"
#include "stages/files/whole_io.h"
#include "stages/output/formats/h5_number_type.h"
#include "stages/output/rows/row_hash.h"

namespace melflow {
namespace {

auto lease_scratch(ChunkSpace& space) {
  return space.scratch.lease([] { return std::make_unique<ChunkCodec::Scratch>(); });
}

std::size_t product(const std::vector<hsize_t>& shape) {
  std::size_t n = 1;
  for (const hsize_t axis : shape) n *= axis;
  return n;
}
}  // namespace

// A complete chunk that is being written to the log, until that has succeeded or failed.
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

ChunkCodec::Packed PackingCost::pack(const ChunkCodec& codec, std::span<const std::byte> chunk,
                                     ChunkCodec::Scratch& scratch) {
  constexpr std::int64_t kEvery = 64;  // one chunk in so many is also packed at level 1
  const std::int64_t number = chunks_++;
  const bool is_sampled = number % kEvery == 0 || (number & (number - 1)) == 0;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (codec.level() == 0 || !is_sampled || !lock.try_lock()) return codec.pack(chunk, scratch);
  const auto timed = [&](const ChunkCodec& by, ChunkCodec::Scratch& with, Sum& sum) {
    const std::int64_t before = StageMeter::thread_cpu();
    const ChunkCodec::Packed packed = by.pack(chunk, with);
    sum.nanoseconds += StageMeter::thread_cpu() - before;
    sum.bytes += packed.bytes.size();
    return packed;
  };
  ++sampled_;
  bytes_ += chunk.size();
  if (codec.level() > 1) timed(codec.at_level(1), scratch_, at_level_1_);
  const ChunkCodec::Packed packed = timed(codec, scratch, packed_);
  if (codec.level() == 1) at_level_1_ = packed_;
  return packed;
}

std::optional<std::pair<PackingCost::Estimate, PackingCost::Estimate>> PackingCost::estimates()
    const {
  const std::lock_guard lock(mutex_);
  if (sampled_ == 0) return std::nullopt;
  const double all = static_cast<double>(chunks_) / static_cast<double>(sampled_);
  const auto of = [&](const Sum& sum) {
    return Estimate{1e-9 * static_cast<double>(sum.nanoseconds) * all,
                    static_cast<double>(sum.bytes) / static_cast<double>(bytes_)};
  };
  return std::pair(of(packed_), of(at_level_1_));
}

// Rows come nearly in order: each thread writes one chunk, another one is open between those of two
// threads, and the last one of every file waits for rows. A thread that packs has two copies of a
// chunk, one shuffled and one compressed.
std::size_t ChunkSpace::most(std::size_t chunk_bytes, int level, int threads, std::size_t files) {
  constexpr std::size_t fast = 512 << 10, thorough = 10 << 20;  // in libdeflate; thorough: level 10
  const auto n = static_cast<std::size_t>(threads);
  const std::size_t packing = level == 0 ? 0 : 2 * chunk_bytes + (level < 10 ? fast : thorough);
  const std::size_t sample = level <= 1 ? 0 : 2 * chunk_bytes + fast;
  const std::size_t parked = n > 1 ? ChunkedRowFile::most_parked(chunk_bytes) * files : 0;
  return (2 * n + files) * BufferPool::rounded(chunk_bytes) + n * packing + sample +
         parked * chunk_bytes;
}

ChunkedRowFile::ChunkedRowFile(const std::string& target, std::string name, NumberType type,
                               std::vector<hsize_t> row_shape, const Opening& opening,
                               const ChunkSettings& settings)
    : RowFile(target, std::move(name), type, product(row_shape), opening),
      settings_(settings),
      row_shape_(std::move(row_shape)),
      codec_(size_of(type), settings.shuffle, settings.level),
      log_(*this, kDataOffset, most_parked(chunk_bytes())) {
  if (opening.resumes) log_.scan(chunk_bytes());
}

std::int64_t ChunkedRowFile::safe_rows() const { return log_.safe() * settings_.rows; }

void ChunkedRowFile::resume_at(std::int64_t rows) {
  put(kMark.data(), kMark.size(), 0);
  reopen(chunk_of(rows), rows % settings_.rows);
}

// Keeps the first `rows` rows of the chunk and drops all later ones; with the mutex held, or by the
// only thread.
void ChunkedRowFile::reopen(std::int64_t index, std::int64_t rows) {
  if (rows > 0) {
    const auto chunk = new_chunk();
    load_chunk(index, *chunk);
    chunk->mark(0, rows, true);
    open_[index] = chunk;
  }
  log_.cut(index);
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

void ChunkedRowFile::write(std::int64_t row, std::int64_t count, const Elsewhere& from) {
  std::vector<char> piece;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t n = std::min(rows_at_once(), count - done);
    piece.resize(static_cast<std::size_t>(n) * row_bytes());
    const std::uint64_t at = from.at + static_cast<std::uint64_t>(done) * row_bytes();
    if (const int error = read_whole(from.fd, piece.data(), piece.size(), at))
      throw RunError(fmt::format("{}: cannot be read: {}", from.path, std::strerror(error)));
    write_range({row + done, piece.data(), n, type()});
    done += n;
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
  log_.add(index, settings_.space->cost.pack(codec_, chunk.bytes(), *scratch));
}

// Returns false where the file has no such chunk, or it is damaged.
bool ChunkedRowFile::load(std::int64_t index, std::span<std::byte> to) const {
  const auto packed = log_.load(index);
  const auto scratch = lease_scratch(*settings_.space);
  return packed && codec_.unpack(packed->bytes, packed->filter_mask, to, *scratch);
}

void ChunkedRowFile::load_chunk(std::int64_t index, Chunk& chunk) const {
  if (!load(index, chunk.bytes()))
    throw RunError(part_path() + ": a chunk that was written cannot be read back");
}

void ChunkedRowFile::roll_back(std::int64_t row) {
  const std::int64_t index = chunk_of(row);
  const std::int64_t first = row - index * settings_.rows;
  std::unique_lock lock(mutex_);
  // Rows of complete files may still be in flight to this chunk, or the chunk to the file.
  packed_.wait(lock, [&] { return packing_.empty() || *packing_.rbegin() < index; });
  open_.erase(open_.upper_bound(index), open_.end());
  const auto it = open_.find(index);
  if (it != open_.end() && first > 0)
    it->second->mark(first, settings_.rows, false);
  else if (it != open_.end())
    open_.erase(it);
  reopen(index, log_.has(index) ? first : 0);
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

void ChunkedRowFile::read(std::int64_t row, std::int64_t count, float* values) {
  flush_open();
  const auto chunk = new_chunk();
  for (const std::int64_t end = row + count; row < end;) {
    const std::int64_t index = chunk_of(row), first = row - index * settings_.rows;
    const std::int64_t n = std::min(end - row, settings_.rows - first);
    load_chunk(index, *chunk);
    const std::size_t value_count = static_cast<std::size_t>(n) * values_per_row();
    to_float(chunk->bytes().data() + static_cast<std::size_t>(first) * row_bytes(), value_count,
             type(), values);
    values += value_count;
    row += n;
  }
}

std::optional<std::uint64_t> ChunkedRowFile::hash(std::int64_t row, std::int64_t count) const {
  RowHash out;
  std::unique_lock lock(mutex_);
  auto loaded = new_chunk();
  for (const std::int64_t end = row + count; row < end;) {
    const std::int64_t index = chunk_of(row), first = row - index * settings_.rows;
    const std::int64_t n = std::min(end - row, settings_.rows - first);
    packed_.wait(lock, [&] { return !packing_.contains(index); });
    const auto it = open_.find(index);
    if (it == open_.end() && !load(index, loaded->bytes())) return std::nullopt;
    const Chunk& chunk = it != open_.end() ? *it->second : *loaded;
    out.add(chunk.bytes().data() + static_cast<std::size_t>(first) * row_bytes(),
            static_cast<std::size_t>(n) * row_bytes());
    row += n;
  }
  return out.value();
}

// Changed chunks are written again behind all others, since the rows moved into them are read from
// the old ones; only rows of files that failed late are moved over.
void ChunkedRowFile::move_rows(std::int64_t from, std::int64_t to, std::int64_t count) {
  flush_open();
  const auto source = new_chunk(), target = new_chunk();
  std::int64_t loaded = -1;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t index = chunk_of(to + done), first = to + done - index * settings_.rows;
    const std::int64_t n = std::min(count - done, settings_.rows - first);
    load_chunk(index, *target);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t row = from + done + i;
      if (chunk_of(row) != loaded) load_chunk(loaded = chunk_of(row), *source);
      std::memcpy(
          target->bytes().data() + static_cast<std::size_t>(first + i) * row_bytes(),
          source->bytes().data() + static_cast<std::size_t>(row % settings_.rows) * row_bytes(),
          row_bytes());
    }
    put_chunk(index, *target);
    done += n;
  }
}

void ChunkedRowFile::make_hdf5(Shape shape, const Describe& describe, const Check& check) {
  flush_open();
  const std::vector<char> head(kDataOffset, 0);
  put(head.data(), head.size(), 0);
  cut(log_.end());
  const std::lock_guard lock(hdf5_mutex());
  const QuietHdf5 quiet;
  Hdf5Descriptor to(fd());
  written(to, [&] {
    Hid file = to.create_around(part_path(), kDataOffset, log_.end());
    {
      Hid rows = make_rows(file, shape);
      link_chunks(to, rows, shape);
      describe(file, rows);
      rows.close(name());
    }
    file.close("cannot complete " + part_path());
  });
  if (check)
    read_back([&](hid_t file) {
      check(file);
      check_chunks(file, shape);
    });
}

Hid ChunkedRowFile::make_rows(hid_t file, Shape shape) const {
  std::vector<hsize_t> most{H5S_UNLIMITED}, chunk{static_cast<hsize_t>(settings_.rows)};
  for (const hsize_t axis : row_shape_) {
    most.push_back(axis);
    chunk.push_back(axis);
  }
  const auto rank = static_cast<int>(shape.size());
  const Hid space(H5Screate_simple(rank, shape.data(), most.data()), H5Sclose, "dataspace");
  const Hid create = without_times(H5P_DATASET_CREATE);
  h5_check(H5Pset_chunk(create, rank, chunk.data()), "chunks");
  h5_check(H5Pset_fill_time(create, H5D_FILL_TIME_NEVER), "fill");
  if (settings_.shuffle) h5_check(H5Pset_shuffle(create), "shuffle");
  if (settings_.level > 0)
    h5_check(H5Pset_deflate(create, static_cast<unsigned>(std::min(settings_.level, 9))),
             "deflate");
  const Hid type = h5_number_type(this->type());
  return {H5Dcreate2(file, name().c_str(), type, space, H5P_DEFAULT, create, H5P_DEFAULT), H5Dclose,
          name()};
}

std::vector<hsize_t> ChunkedRowFile::chunk_offset(std::int64_t index) const {
  std::vector<hsize_t> out(1 + row_shape_.size(), 0);
  out[0] = static_cast<hsize_t>(index) * static_cast<hsize_t>(settings_.rows);
  return out;
}

// Registers the chunks with HDF5, which believes that it writes them.
void ChunkedRowFile::link_chunks(Hdf5Descriptor& to, hid_t rows, Shape shape) const {
  const auto count = static_cast<std::int64_t>(shape.front());
  std::vector<char> bytes;
  for (std::int64_t i = 0; i * settings_.rows < count; ++i) {
    const ChunkLog::Place& place = log_.place(i);
    bytes.resize(std::max<std::size_t>(bytes.size(), place.bytes));
    const Hdf5Descriptor::There there(to, place.at, place.bytes);
    h5_check(H5Dwrite_chunk(rows, H5P_DEFAULT, place.filter_mask, chunk_offset(i).data(),
                            place.bytes, bytes.data()),
             "cannot write " + part_path());
  }
}

void ChunkedRowFile::check_chunks(hid_t file, Shape shape) const {
  const Hid rows(H5Dopen2(file, name().c_str(), H5P_DEFAULT), H5Dclose, name());
  for (std::int64_t i = 0; i * settings_.rows < static_cast<std::int64_t>(shape.front()); ++i) {
    const ChunkLog::Place& place = log_.place(i);
    unsigned filter_mask = 0;
    haddr_t at = 0;
    hsize_t bytes = 0;
    if (H5Dget_chunk_info_by_coord(rows, chunk_offset(i).data(), &filter_mask, &at, &bytes) < 0 ||
        at != place.at || bytes != place.bytes || filter_mask != place.filter_mask)
      throw RunError(
          fmt::format("{}: the place of its chunk {} is not what was written", part_path(), i));
  }
}

}  // namespace melflow
