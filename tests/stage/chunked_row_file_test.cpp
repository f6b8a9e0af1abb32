// Rows in compressed chunks, read back by HDF5, whatever their order, and after voiding or moving
// rows.
#include "stages/output/formats/chunked_row_file.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "pipeline/base/problem.h"
#include "stages/output/rows/row_hash.h"
#include "tests/support/complaint.h"
#include "tests/support/h5_reader.h"
#include "tests/support/printing.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::chunked_row_file_test {
namespace {

// Row r has the values r * 10, r * 10 + 1, ...; exact also as float16 while r is small.
std::vector<float> rows(std::int64_t first, std::int64_t count, std::size_t per_row,
                        float add = 0) {
  std::vector<float> out;
  for (std::int64_t r = first; r < first + count; ++r)
    for (std::size_t i = 0; i < per_row; ++i)
      out.push_back(static_cast<float>(r % 100) * 10 + static_cast<float>(i) + add);
  return out;
}

// Rounds values to a type.
std::vector<float> in_type(std::vector<float> values, NumberType type) {
  std::vector<std::uint32_t> room(values.size());
  from_float(values, type, room.data());
  to_float(room.data(), values.size(), type, values.data());
  return values;
}

void nothing_more(hid_t, hid_t) {}

}  // namespace

TEST_CASE("chunk codec: a chunk comes back, and what does not get shorter is stored as it is") {
  std::mt19937 random(1);
  for (const std::size_t element : {1U, 2U, 4U, 8U}) {
    for (const bool shuffle : {true, false}) {
      for (const int level : {0, 1, 6, 12}) {
        for (const bool is_noise : {true, false}) {
          const ChunkCodec codec(element, shuffle, level);
          ChunkCodec::Scratch scratch, other;
          std::vector<std::byte> chunk(8 * 1024), back(chunk.size());
          for (std::size_t i = 0; i < chunk.size(); ++i)
            chunk[i] = static_cast<std::byte>(is_noise ? random() : i / 64);
          const ChunkCodec::Packed packed = codec.pack(chunk, scratch);
          CHECK((packed.filter_mask != 0) == (is_noise && level > 0));
          CHECK((packed.bytes.size() < chunk.size()) == (!is_noise && level > 0));
          CHECK(codec.unpack(packed.bytes, packed.filter_mask, back, other));
          CHECK(back == chunk);
          CHECK_FALSE(codec.unpack(packed.bytes.first(packed.bytes.size() / 2), packed.filter_mask,
                                   back, other));
        }
      }
    }
  }
}

TEST_CASE("chunk codec: the noise of low bytes is stored before what is compressed") {
  std::mt19937 random(2);
  for (const std::size_t elements : {16U * 1024U, 64U * 1024U, 65'535U, 100'003U}) {
    for (const std::size_t noisy : {0U, 1U, 2U, 3U, 4U}) {
      CAPTURE(elements);
      CAPTURE(noisy);
      const ChunkCodec codec(4, true, 1);
      ChunkCodec::Scratch scratch, other;
      std::vector<std::byte> chunk(4 * elements), back(chunk.size());
      for (std::size_t i = 0; i < chunk.size(); ++i)
        chunk[i] = static_cast<std::byte>(i % 4 < noisy ? random() : i / 4096);
      const ChunkCodec::Packed packed = codec.pack(chunk, scratch);
      CHECK((packed.filter_mask != 0) == (noisy == 4));
      const std::size_t least = noisy * elements;
      CHECK(packed.bytes.size() >= least);
      CHECK(packed.bytes.size() < least + least / 1000 + elements / 16);
      CHECK(codec.unpack(packed.bytes, packed.filter_mask, back, other));
      CHECK(back == chunk);
      if (packed.filter_mask != 0) continue;
      std::vector<std::byte> spoiled(packed.bytes.begin(), packed.bytes.end());
      spoiled[spoiled.size() / 2] ^= std::byte{1};
      CHECK_FALSE(codec.unpack(spoiled, 0, back, other));
    }
  }
}

TEST_CASE("chunked rows: HDF5's own filters read chunks with stored blocks") {
  std::mt19937 random(3);
  std::normal_distribution<float> level(-50.0F, 6.0F);
  std::vector<float> values(5000 * 32);
  for (float& v : values) v = level(random);
  const TempFolder folder;
  ChunkedRowFile file(folder / "out.h5", "mel", NumberType::float32, {32}, Existing::refuse,
                      {2048, 1, true});
  file.write(0, values.data(), 5000);
  const std::array<hsize_t, 2> shape{5000, 32};
  file.make_hdf5(shape, nothing_more);
  file.publish(false);
  const Hid h5(H5Fopen((folder / "out.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, "open");
  const Hid rows_of(H5Dopen2(h5, "mel", H5P_DEFAULT), H5Dclose, "mel");
  CHECK(H5Dget_storage_size(rows_of) < values.size() * sizeof(float) * 9 / 10);
  std::vector<float> read(values.size());
  REQUIRE(H5Dread(rows_of, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data()) >= 0);
  CHECK(read == values);
}

TEST_CASE("chunked rows: HDF5 reads what was written, in any order, for every kind of chunk") {
  struct Row {
    std::vector<hsize_t> shape;  ///< shape of a row
    std::int64_t count;
    ChunkSettings settings;
  };
  const Row table[] = {
      {{4}, 0, {10, 1, true}},     {{4}, 1, {10, 1, true}},    {{4}, 10, {10, 1, true}},
      {{4}, 1003, {10, 6, false}}, {{4}, 95, {100, 0, false}}, {{3, 5}, 77, {8, 1, true}},
      {{1}, 500, {1, 1, true}},
  };
  const TempFolder folder;
  for (const Row& row : table) {
    for (const NumberType type : {NumberType::float32, NumberType::float16, NumberType::bfloat16}) {
      CAPTURE(row.count);
      CAPTURE(row.settings.rows);
      std::size_t per_row = 1;
      for (const hsize_t n : row.shape) per_row *= n;
      const std::string target = folder / "out.h5";
      ChunkedRowFile file(target, "mfcc", type, row.shape, Existing::replace, row.settings);
      // Writes pieces of seven rows; odd pieces come early, as far as allowed.
      const auto write = [&](std::int64_t from) {
        for (std::int64_t at = from; at < row.count; at += 14) {
          const std::int64_t n = std::min<std::int64_t>(7, row.count - at);
          file.write(at, rows(at, n, per_row).data(), n);
        }
      };
      std::thread odd(write, 7);
      write(0);
      odd.join();
      std::vector<hsize_t> shape{static_cast<hsize_t>(row.count)};
      shape.insert(shape.end(), row.shape.begin(), row.shape.end());
      file.make_hdf5(shape, nothing_more);
      file.publish(false);
      const H5File h5(target);
      CHECK(h5.shape("mfcc") == std::vector<std::uint64_t>(shape.begin(), shape.end()));
      CHECK(h5.layout("mfcc") == "chunked");
      CHECK(h5.type("mfcc") == to_text(type));
      CHECK(h5.floats("mfcc") == in_type(rows(0, row.count, per_row), type));
    }
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE(
    "chunked rows: rows that have the file's type are the same chunks as those made of floats") {
  const TempFolder folder;
  for (const NumberType type : {NumberType::float16, NumberType::bfloat16}) {
    const std::vector<float> v = rows(0, 95, 4, 0.37F);
    std::vector<std::uint16_t> halves(v.size());
    from_float(v, type, halves.data());
    std::string bytes[2];
    for (const bool as_they_are : {false, true}) {
      const std::string target = folder / "out.h5";
      ChunkedRowFile file(target, "mel", type, {4}, Existing::replace, {10, 1, true});
      CHECK_FALSE(file.is_serial(type));
      for (std::int64_t at = 0; at < 95; at += 25) {
        const std::int64_t n = std::min<std::int64_t>(25, 95 - at);
        const RowRange range = as_they_are ? RowRange{at, halves.data() + at * 4, n, type}
                                           : RowRange{at, v.data() + at * 4, n};
        file.write({&range, 1});
      }
      file.make_hdf5(std::vector<hsize_t>{95, 4}, nothing_more);
      file.publish(false);
      bytes[as_they_are] = H5File(target).raw("mel");
      CHECK(H5File(target).floats("mel") == in_type(v, type));
    }
    CHECK(bytes[0] == bytes[1]);
  }
}

TEST_CASE("chunked rows: many threads fill chunks together") {
  const TempFolder folder;
  ChunkedRowFile file(folder / "out.h5", "mel", NumberType::float32, {16}, Existing::refuse,
                      {50, 1, true});
  constexpr std::int64_t kRows = 12'000;
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 6; ++t)
    threads.emplace_back([&file, t] {
      for (std::int64_t at = t * 13; at < kRows; at += 6 * 13) {
        const std::int64_t n = std::min<std::int64_t>(13, kRows - at);
        file.write(at, rows(at, n, 16).data(), n);
      }
    });
  for (std::thread& t : threads) t.join();
  file.make_hdf5(std::vector<hsize_t>{kRows, 16}, nothing_more);
  file.publish(false);
  CHECK(H5File(folder / "out.h5").floats("mel") == rows(0, kRows, 16));
}

TEST_CASE("chunked rows: one thread may be ahead of the rows that are missing, however far") {
  const TempFolder folder;
  ChunkedRowFile file(folder / "out.h5", "mel", NumberType::float32, {16}, Existing::refuse,
                      {50, 1, true});
  constexpr std::int64_t kRows = 12'000;
  // Writes twice, so that space on disk is reused.
  for (const std::int64_t from : {kRows / 2, std::int64_t{0}}) {
    file.write(from + 60, rows(from + 60, kRows / 2 - 60, 16).data(), kRows / 2 - 60);
    CHECK(file.safe_rows() <= from);
    if (from > 0) file.roll_back(from + kRows / 4);
    if (from > 0)
      file.write(from + kRows / 4, rows(from + kRows / 4, kRows / 4, 16).data(), kRows / 4);
  }
  CHECK(file.safe_rows() == 0);
  file.write(0, rows(0, 60, 16).data(), 60);
  CHECK(file.safe_rows() == kRows / 2);
  file.write(kRows / 2, rows(kRows / 2, 60, 16).data(), 60);
  CHECK(file.safe_rows() == kRows);
  CHECK(file.hash(100, 5000) == RowHash::of(rows(100, 5000, 16).data(), 5000 * 16,
                                            NumberType::float32, NumberType::float32));
  file.make_hdf5(std::vector<hsize_t>{kRows, 16}, nothing_more);
  file.publish(false);
  CHECK(H5File(folder / "out.h5").floats("mel") == rows(0, kRows, 16));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("chunked rows: voided rows leave nothing, wherever in their chunks they begin and end") {
  const TempFolder folder;
  for (const std::int64_t keep : {0, 5, 10, 13, 20}) {
    for (const std::int64_t voided : {1, 5, 7, 10, 27, 40}) {
      for (const std::int64_t after : {0, 3, 12, 60}) {
        CAPTURE(keep);
        CAPTURE(voided);
        CAPTURE(after);
        ChunkedRowFile file(folder / "out.h5", "mel", NumberType::float32, {4}, Existing::replace,
                            {10, 1, true});
        file.write(0, rows(0, keep, 4).data(), keep);
        // Leaves a hole, as blocks may overtake each other.
        const std::int64_t hole = voided / 3;
        file.write(keep + hole, rows(0, voided - hole, 4, 0.5F).data(), voided - hole);
        file.roll_back(keep);
        file.roll_back(keep);  // voids nothing more
        file.write(keep, rows(keep, after, 4).data(), after);
        file.make_hdf5(std::vector<hsize_t>{static_cast<hsize_t>(keep + after), 4}, nothing_more);
        file.publish(false);
        CHECK(H5File(folder / "out.h5").floats("mel") == rows(0, keep + after, 4));
      }
    }
  }
}

TEST_CASE("chunked rows: rows are moved down over a gap at the end") {
  const TempFolder folder;
  ChunkedRowFile file(folder / "out.h5", "mel", NumberType::float16, {4}, Existing::refuse,
                      {10, 1, true});
  file.write(0, rows(0, 17, 4).data(), 17);
  file.write(17, rows(0, 8, 4, 0.5F).data(), 8);
  file.write(25, rows(17, 38, 4).data(), 38);
  file.move_rows(25, 17, 38);
  file.make_hdf5(std::vector<hsize_t>{55, 4}, nothing_more);
  file.publish(false);
  CHECK(H5File(folder / "out.h5").floats("mel") == rows(0, 55, 4));
}

TEST_CASE("chunked rows: a file that cannot grow is an error, and nothing is left behind") {
  const TempFolder folder;
  const std::string target = folder / "out.h5";
  {
    ChunkedRowFile file(target, "mel", NumberType::float32, {100}, Existing::refuse,
                        {50, 0, false});
    const std::vector<float> v = rows(0, 1000, 100);
    const FileSizeLimit limit(200'000);
    const std::string text = complaint([&] { file.write(0, v.data(), 1000); });
    CAPTURE(text);
    CHECK(text.starts_with(target + ".part: cannot be written: File too large. "));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  {
    // Voiding rows of a chunk that could not be written does not wait for that.
    ChunkedRowFile file(target, "mel", NumberType::float32, {100}, Existing::refuse,
                        {50, 0, false});
    const FileSizeLimit limit(200'000);
    std::int64_t at = 0;
    while (complaint([&] { file.write(at, rows(at, 50, 100).data(), 50); }).empty()) at += 50;
    REQUIRE(at < 1000);
    complaint([&] { file.roll_back(at + 25); });
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

}  // namespace melflow::test::chunked_row_file_test
