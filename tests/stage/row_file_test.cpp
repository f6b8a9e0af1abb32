#include "stages/output/formats/row_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <thread>

#include "pipeline/base/problem.h"
#include "stages/output/formats/chunked_row_file.h"
#include "stages/output/formats/hdf5.h"
#include "tests/support/complaint.h"
#include "tests/support/h5_reader.h"
#include "tests/support/printing.h"
#include "tests/support/skip.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::row_file_test {
namespace {

std::vector<float> values(std::size_t count, float first = 0) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = first + static_cast<float>(i) * 0.37F;
  return out;
}

std::string stored(const std::vector<float>& v, NumberType type) {
  std::string out(v.size() * (type == NumberType::float32 ? 4 : 2), '\0');
  if (v.empty()) return out;
  if (type == NumberType::float32)
    std::memcpy(out.data(), v.data(), out.size());
  else
    from_float(v, type, out.data());
  return out;
}

void nothing_more(hid_t, hid_t) {}

bool exists(const std::string& path) { return std::filesystem::exists(path); }
}  // namespace

TEST_CASE("row file: rows become a dataset, small or large, of two or three axes, or none at all") {
  struct Row {
    std::vector<hsize_t> shape;
    bool in_place;  ///< large enough to be written directly
  };
  const Row rows[] = {
      {{0, 4}, false},    {{1, 1}, false},       {{3, 4}, false},     {{0, 3, 4}, false},
      {{2, 3, 4}, false}, {{8191, 1}, false},    {{16383, 1}, false}, {{16384, 1}, true},
      {{5000, 80}, true}, {{700, 11, 64}, true}, {{40'000, 1}, true},
  };
  const TempFolder folder;
  for (const Row& row : rows) {
    for (const NumberType type : {NumberType::float32, NumberType::float16, NumberType::bfloat16}) {
      const std::size_t per_row =
          std::accumulate(row.shape.begin() + 1, row.shape.end(), std::size_t{1},
                          [](std::size_t a, hsize_t b) { return a * b; });
      const std::size_t count = per_row * row.shape[0];
      CAPTURE(row.shape[0]);
      CAPTURE(per_row);
      const std::string target = folder / "out.h5";
      const std::vector<float> v = values(count);
      RowFile file(target, "mfcc", type, per_row, Existing::replace);
      CHECK(file.row_bytes() == per_row * (type == NumberType::float32 ? 4 : 2));
      CHECK(file.part_path() == target + ".part");
      // In two pieces, the later one first.
      const auto half = static_cast<std::int64_t>(row.shape[0] / 2);
      const auto all = static_cast<std::int64_t>(row.shape[0]);
      file.write(half, v.data() + static_cast<std::size_t>(half) * per_row, all - half);
      file.write(0, v.data(), half);
      file.make_hdf5(row.shape, nothing_more);
      file.publish(false);
      CHECK(names_in(folder.path()).size() == 1);
      const H5File h5(target);
      CHECK(h5.shape("mfcc") == std::vector<std::uint64_t>(row.shape.begin(), row.shape.end()));
      CHECK(h5.type("mfcc") == to_text(type));
      CHECK(h5.layout("mfcc") == "contiguous");
      CHECK(h5.raw("mfcc") == stored(v, type));
      if (count == 0) continue;
      // Rows can be mapped into memory at the offset that HDF5 states.
      const std::string bytes = read_bytes(target);
      const auto at = static_cast<std::size_t>(h5.offset("mfcc"));
      CHECK(bytes.substr(at, stored(v, type).size()) == stored(v, type));
      if (row.in_place && type == NumberType::float32) CHECK(at % 4096 == 0);
    }
  }
}

TEST_CASE("row file: what is described beside the rows is there, before and after them") {
  const TempFolder folder;
  const std::vector<float> v = values(100'000);
  std::string text(300'000, 'x');  // far more than fits before the rows
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 26);
  RowFile file(folder / "out.h5", "mel", NumberType::float32, 100, Existing::refuse);
  file.write(0, v.data(), 1000);
  file.write(5000, v.data(), 10);  // rows of a file that failed, after the end
  const std::vector<hsize_t> shape{1000, 100};
  file.make_hdf5(shape, [&](hid_t h5, hid_t) {
    const hsize_t n = text.size();
    const Hid space(H5Screate_simple(1, &n, nullptr), H5Sclose, "space");
    const Hid set(
        H5Dcreate2(h5, "text", H5T_NATIVE_CHAR, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
        H5Dclose, "text");
    h5_check(H5Dwrite(set, H5T_NATIVE_CHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), "text");
  });
  file.publish(true);
  const H5File h5(folder / "out.h5");
  CHECK(h5.floats("mel") == v);
  CHECK(h5.raw("text") == text);
  CHECK(std::filesystem::file_size(folder / "out.h5") < 100'000 * 4 + 600'000);
}

TEST_CASE("row file: rows that have the file's type go to it as they are, among others") {
  for (const NumberType type : {NumberType::float16, NumberType::bfloat16}) {
    const TempFolder folder;
    const std::vector<float> v = values(4000);
    const std::string bytes = stored(v, type);
    RowFile file(folder / "out.h5", "mel", type, 4, Existing::refuse);
    CHECK(file.is_serial(type));
    CHECK_FALSE(file.is_serial(NumberType::float32));
    // Adjacent ranges of both kinds, and a hole that is filled later.
    const RowRange ranges[] = {{0, bytes.data(), 300, type},
                               {300, bytes.data() + 2400, 100, type},
                               {400, v.data() + 1600, 100},
                               {700, bytes.data() + 5600, 300, type}};
    file.write(ranges);
    file.write(500, v.data() + 2000, 200);
    std::vector<float> back(4000);
    file.read(0, 1000, back.data());
    const std::vector<hsize_t> shape{1000, 4};
    file.make_hdf5(shape, nothing_more);
    file.publish(false);
    CHECK(H5File(folder / "out.h5").raw("mel") == bytes);
    CHECK(back == H5File(folder / "out.h5").floats("mel"));
  }
}

TEST_CASE("row file: integers of any width go to it and come back as they are") {
  for (const NumberType type : kNumberTypes) {
    if (!is_integer(type)) continue;
    CAPTURE(to_text(type));
    const TempFolder folder;
    std::string bytes(1000 * 3 * size_of(type), '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 37 + i / 251);
    for (const bool in_chunks : {false, true}) {
      const std::string target = folder / "out.h5";
      std::unique_ptr<RowFile> file;
      if (in_chunks)
        file = std::make_unique<ChunkedRowFile>(target, "features", type, std::vector<hsize_t>{3},
                                                Existing::replace, ChunkSettings{70, 6, true});
      else
        file = std::make_unique<RowFile>(target, "features", type, 3, Existing::replace);
      const RowRange range{0, bytes.data(), 1000, type};
      file->write({&range, 1});
      file->make_hdf5(std::vector<hsize_t>{1000, 3}, nothing_more);
      file->publish(false);
      const H5File h5(target);
      CHECK(h5.type("features") == to_text(type));
      CHECK(h5.raw("features") == bytes);
    }
  }
}

TEST_CASE("row file: rows of a third type are refused") {
  const TempFolder folder;
  RowFile file(folder / "out.h5", "mel", NumberType::float16, 1, Existing::refuse);
  const std::uint16_t value = 0;
  const RowRange range{0, &value, 1, NumberType::bfloat16};
  CHECK_THROWS_WITH_AS(file.write({&range, 1}), "rows of bfloat16 for a file of float16",
                       std::logic_error);
}

TEST_CASE("row file: many threads write at once") {
  const TempFolder folder;
  RowFile file(folder / "out.h5", "mel", NumberType::float16, 16, Existing::refuse);
  constexpr std::int64_t kRows = 4000;
  const std::vector<float> v = values(kRows * 16);
  {
    std::vector<std::jthread> threads;
    for (std::int64_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (std::int64_t r = t; r < kRows; r += 4) file.write(r, v.data() + r * 16, 1);
      });
  }
  const std::vector<hsize_t> shape{kRows, 16};
  file.make_hdf5(shape, nothing_more);
  file.publish(false);
  CHECK(H5File(folder / "out.h5").raw("mel") == stored(v, NumberType::float16));
}

TEST_CASE("row file: rows can be moved down over others") {
  const TempFolder folder;
  constexpr std::size_t kValues = 50;
  constexpr std::int64_t kRows = 20'000;
  const std::vector<float> v = values(kRows * kValues);
  RowFile file(folder / "out.h5", "mel", NumberType::float32, kValues, Existing::refuse);
  file.write(0, v.data(), kRows);
  file.move_rows(7, 3, kRows - 7);  // overlapping, and longer than one piece
  const std::vector<hsize_t> shape{kRows - 4, kValues};
  file.make_hdf5(shape, nothing_more);
  file.publish(false);
  std::vector<float> expected(v.begin(), v.begin() + 3 * kValues);
  expected.insert(expected.end(), v.begin() + 7 * kValues, v.end());
  CHECK(H5File(folder / "out.h5").floats("mel") == expected);
}

TEST_CASE("row file: what is spilled comes back and leaves no file behind") {
  const TempFolder folder;
  RowFile file(folder / "out.h5", "mel", NumberType::float16, 3, Existing::refuse);
  const std::vector<float> v = values(300, 1e-3F);
  file.spill().put(v.data() + 150, 600, 600);
  file.spill().put(v.data(), 600, 0);
  std::vector<float> back(300);
  file.spill().get(back.data(), 1200, 0);
  CHECK(back == v);
  CHECK(names_in(folder.path()).size() == 1);
}

TEST_CASE("row file: a run that begins while another ends never harms its output") {
  // Between opening and locking the .part file, the other run may give it its final name.
  const TempFolder folder;
  const std::string target = folder / "out.h5";
  const float value = 7;
  std::atomic<bool> over{false};
  int harmed = 0, ended = 0;
  {
    std::jthread beginning([&] {
      while (!over)
        complaint([&] { RowFile(target, "mel", NumberType::float32, 1, Existing::replace); });
    });
    while (ended < 300) {
      const std::string message = complaint([&] {
        RowFile file(target, "mel", NumberType::float32, 1, Existing::replace);
        file.write(0, &value, 1);
        file.publish(false);
      });
      if (!message.empty()) continue;  // the other run was writing
      ++ended;
      if (std::filesystem::file_size(target) == 0) ++harmed;
    }
    over = true;
  }
  CHECK(harmed == 0);
}

TEST_CASE("row file: an unfinished file goes with its owner, unless it is to stay") {
  const TempFolder folder;
  const std::string target = folder / "out.h5";
  { const RowFile file(target, "mel", NumberType::float32, 1, Existing::refuse); }
  CHECK(names_in(folder.path()).size() == 0);
  {
    RowFile file(target, "mel", NumberType::float32, 1, Existing::refuse);
    file.keep();
  }
  CHECK(exists(target + ".part"));
  CHECK(names_in(folder.path()).size() == 1);
  // A later run starts over.
  { const RowFile file(target, "mel", NumberType::float32, 1, Existing::refuse); }
  CHECK(names_in(folder.path()).size() == 0);
}

TEST_CASE("row file: a file that came there meanwhile is not overwritten unasked") {
  for (const bool overwrite : {false, true}) {
    const TempFolder folder;
    const std::string target = folder / "out.h5";
    RowFile file(target, "mel", NumberType::float32, 1,
                 overwrite ? Existing::replace : Existing::refuse);
    const std::vector<hsize_t> shape{0, 1};
    file.make_hdf5(shape, nothing_more);
    folder.write("out.h5", "precious");
    const std::string message = complaint([&] { file.publish(false); });
    CAPTURE(message);
    if (overwrite) {
      CHECK(message.empty());
      CHECK(H5File(target).shape("mel")[0] == 0);
    } else {
      CHECK(message == target + ": cannot be given its name: File exists; the complete file is " +
                           target + ".part");
      CHECK(H5File(target + ".part").shape("mel")[0] == 0);
      CHECK(read_bytes(target) == "precious");
    }
  }
}

TEST_CASE("row file: what lies beside the target is left alone") {
  const TempFolder folder;
  folder.write("out.h5.meta", "precious");
  folder.write("out.meta", "precious");
  RowFile file(folder / "out.h5", "mel", NumberType::float32, 1, Existing::refuse);
  const std::vector<hsize_t> shape{0, 1};
  file.make_hdf5(shape, nothing_more);
  file.publish(false);
  CHECK(read_bytes(folder / "out.h5.meta") == "precious");
  CHECK(read_bytes(folder / "out.meta") == "precious");
  CHECK(names_in(folder.path()).size() == 3);
}

TEST_CASE("row file: a full disk is told, whatever did not fit, and nothing is published") {
  const SmallDisk disk(1 << 20);
  if (!disk.ok()) {
    skip("a file system cannot be mounted here");
    return;
  }
  const std::string full =
      "the disk is full (No space left on device). Free some space or write elsewhere "
      "(option path of the hdf5_write node)";
  const std::vector<float> v = values(std::size_t{1} << 19);
  struct Row {
    const char* what;
    std::int64_t rows;
    std::size_t beside;
    int groups;  ///< kept in HDF5's cache until the end
    bool fits;
  };
  // 1 MiB holds 64 KiB before the rows, the rows of 4 KiB each, and what follows them.
  const Row rows[] = {
      {"all", 100, 1000, 10, true},
      {"the rows do not fit", 300, 1000, 10, false},
      {"what comes behind the rows does not fit", 200, 500'000, 10, false},
      {"the last pages do not fit", 239, 3000, 10, false},
      {"what HDF5 keeps until it closes the file does not fit", 235, 1000, 300, false},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const std::string target = disk / "out.h5";
    {
      RowFile file(target, "mel", NumberType::float32, 1024, Existing::replace);
      const std::string message = complaint([&] {
        file.write(0, v.data(), row.rows);
        const std::vector<hsize_t> shape{static_cast<hsize_t>(row.rows), 1024};
        file.make_hdf5(shape, [&](hid_t h5, hid_t) {
          const hsize_t n = row.beside;
          const Hid space(H5Screate_simple(1, &n, nullptr), H5Sclose, "space");
          const Hid set(H5Dcreate2(h5, "beside", H5T_NATIVE_CHAR, space, H5P_DEFAULT, H5P_DEFAULT,
                                   H5P_DEFAULT),
                        H5Dclose, "beside");
          h5_check(H5Dwrite(set, H5T_NATIVE_CHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, v.data()),
                   "beside");
          for (int i = 0; i < row.groups; ++i)
            Hid(H5Gcreate2(h5, std::to_string(i).c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                H5Gclose, "group");
        });
        file.publish(true);
      });
      CAPTURE(message);
      CHECK(message.empty() == row.fits);
      if (!row.fits) CHECK(message == target + ".part: " + full);
      CHECK_FALSE(exists(target + ".part.meta"));
    }
    CHECK(exists(target) == row.fits);
    if (row.fits) {
      CHECK(H5File(target).floats("mel").size() == static_cast<std::size_t>(row.rows) * 1024);
      CHECK(H5File(target).raw("beside").size() == row.beside);
    }
    std::filesystem::remove(target);
    CHECK_FALSE(exists(target + ".part"));
  }
}

TEST_CASE("row file: a file that may not grow is told with the system's reason") {
  const std::string too_large =
      ".part: cannot be written: File too large. No file may be larger here: raise the limit "
      "(ulimit -f), or write to another file system (option path of the hdf5_write node)";
  const TempFolder folder;
  const std::string target = folder / "out.h5";
  const std::vector<float> v = values(100'000);
  {
    RowFile file(target, "mel", NumberType::float32, 100, Existing::refuse);
    const FileSizeLimit limit(200'000);
    CHECK(complaint([&] { file.write(0, v.data(), 1000); }) == target + too_large);
    CHECK(complaint([&] { file.spill().put(v.data(), 400'000, 0); }) == target + too_large);
  }
  CHECK(names_in(folder.path()).size() == 0);
}

TEST_CASE("row file: what HDF5 cannot write when it closes the file is noticed") {
  const TempFolder folder;
  const std::string target = folder / "out.h5";
  const std::vector<float> v = values(100'000);
  {
    RowFile file(target, "mel", NumberType::float32, 100, Existing::refuse);
    const FileSizeLimit limit(64 * 1024 + 400'000 + 1000);
    file.write(0, v.data(), 1000);
    const std::vector<hsize_t> shape{1000, 100};
    const std::string message = complaint([&] {
      file.make_hdf5(shape, [](hid_t h5, hid_t) {
        for (int i = 0; i < 300; ++i)
          Hid(H5Gcreate2(h5, std::to_string(i).c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
              H5Gclose, "group");
      });
    });
    CHECK(message.starts_with(target + ".part: cannot be written: File too large. "));
  }
  CHECK(names_in(folder.path()).size() == 0);
}

}  // namespace melflow::test::row_file_test
