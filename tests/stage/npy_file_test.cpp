#include "stages/output/formats/npy_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "stages/output/formats/npy_header.h"
#include "tests/support/complaint.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::npy_file_test {
namespace {

constexpr const char* kSet[] = {"out.npy", "out.index.npy", "out.index.json"};
const Names kWhole{kSet[0], kSet[1], kSet[2]};

}  // namespace

TEST_CASE("npy header: as numpy writes it, of any length that is asked for") {
  const std::uint64_t one[] = {7}, three[] = {0, 1ULL << 62, 80};
  const std::string small = npy_header("'<f4'", one);
  CHECK(small.size() == 128);
  CHECK(small.substr(0, 10) == std::string("\x93NUMPY\1\0\x76\0", 10));
  CHECK(small.substr(10, 58) == "{'descr': '<f4', 'fortran_order': False, 'shape': (7,), } ");
  CHECK(small.find_first_not_of(' ', 68) == 127);
  CHECK(small.back() == '\n');
  const std::string large = npy_header("'<f2'", three, 4096);
  CHECK(large.size() == 4096);
  CHECK(large.substr(6, 4) == std::string("\1\0\xF6\x0F", 4));
  CHECK(large.find("'shape': (0, 4611686018427387904, 80), }") != large.npos);
  CHECK(npy_header("'<f4'", three, 128).size() == 128);
  const std::string long_type = "[('a', '|S" + std::string(100, '1') + "')]";
  CHECK(npy_header(long_type, one).size() == 192);
  CHECK(complaint([&] {
          npy_header(long_type, one, 128);
        }).starts_with("a .npy header of 128 bytes has no room for"));
  CHECK(complaint([&] { npy_header(std::string(70'000, 'x'), one); }) != "");
}

TEST_CASE("npy file: an unfinished set goes with its owner, unless it is to stay") {
  const TempFolder folder;
  const std::string target = folder / "out.npy";
  {
    const NpyFile file(target, NumberType::float32, 1, Existing::refuse);
    CHECK(names_in(folder.path()) ==
          Names{"out.npy.part", "out.index.npy.part", "out.index.json.part"});
  }
  CHECK(names_in(folder.path()).empty());
  {
    NpyFile file(target, NumberType::float32, 1, Existing::refuse);
    for (PartFile* part : file.parts()) part->keep();
  }
  CHECK(names_in(folder.path()).size() == 3);
  // A later run starts over.
  { const NpyFile file(target, NumberType::float32, 1, Existing::refuse); }
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("npy file: where a name cannot be given none is, and the next run has the files") {
  for (const char* in_the_way : kSet) {
    CAPTURE(std::string(in_the_way));
    const TempFolder folder;
    {
      NpyFile file(folder / "out.npy", NumberType::float32, 1, Existing::refuse);
      const float value = 7;
      file.write(0, &value, 1);
      folder.write(in_the_way, "precious");  // appears during the run
      CHECK(complaint([&] { file.publish(false); })
                .starts_with(folder / in_the_way + ": cannot be given its name: File exists; the "
                                                   "complete files are "));
    }
    CHECK(names_in(folder.path()) == Names{in_the_way, "out.npy.part", "out.index.npy.part",
                                           "out.index.json.part", "out.npy.commit"});
    CHECK(read_bytes(folder / "out.npy.part").size() == 4096 + 4);
    CHECK(read_bytes(folder / in_the_way) == "precious");
    std::filesystem::remove(folder / in_the_way);
    std::vector<OutputName> names;
    for (const char* name : kSet) names.push_back({folder / name});
    CHECK(Publication::recover(folder / "out.npy", names));
    CHECK(names_in(folder.path()) == kWhole);
  }
}

TEST_CASE("npy file: rows under their name and the files beside them are always of one run") {
  const TempFolder folder;
  const std::string target = folder / "out.npy";
  std::atomic<bool> over{false};
  std::atomic<int> seen{0}, mixed{0};
  const auto read = [](const std::string& path) -> std::string {
    try {
      return read_bytes(path);
    } catch (const std::exception&) {
      return "";
    }
  };
  std::thread reader([&] {
    while (!over) {
      const int rows = ::open(target.c_str(), O_RDONLY);
      struct stat before {
      }, after{};
      if (rows < 0) continue;
      float generation = 0;
      const bool has = ::pread(rows, &generation, 4, NpyFile::kDataOffset) == 4;
      ::fstat(rows, &before);
      const std::string index = read(folder / "out.index.npy");
      const std::string document = read(folder / "out.index.json");
      // Unchanged throughout, and so were the files that belong to it.
      const bool is_same = ::stat(target.c_str(), &after) == 0 && after.st_ino == before.st_ino &&
                           after.st_ctim.tv_nsec == before.st_ctim.tv_nsec;
      ::close(rows);
      if (!has || !is_same) continue;
      const std::string expected = std::to_string(static_cast<int>(generation));
      ++seen;
      if (index != expected || document != expected) ++mixed;
    }
  });
  for (int i = 1; i <= 300 || seen < 300; ++i) {
    NpyFile file(target, NumberType::float32, 1, Existing::replace);
    const auto generation = static_cast<float>(i);
    file.write(0, &generation, 1);
    // Stands for the files that make_npy() writes there.
    write_bytes(folder / "out.index.npy.part", std::to_string(i));
    write_bytes(folder / "out.index.json.part", std::to_string(i));
    file.publish(false);
  }
  over = true;
  reader.join();
  CHECK(mixed == 0);
  CHECK(names_in(folder.path()) == kWhole);
}

}  // namespace melflow::test::npy_file_test
