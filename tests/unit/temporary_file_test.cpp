// Temporary files, also where the file system or the system has no O_TMPFILE.
#include "stages/files/temporary_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <span>
#include <string>

#include <doctest/doctest.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/problem.h"
#include "stages/audio/reading/file_reader.h"
#include "stages/containers/archive.h"
#include "stages/files/whole_io.h"
#include "stages/output/formats/npy_file.h"
#include "tests/support/refused_call.h"
#include "tests/support/temp_folder.h"

namespace temporary_file_test {

namespace fs = std::filesystem;
using namespace melflow;
using melflow::test::refuse;
using melflow::test::RefusedCall;
using melflow::test::TempFolder;

namespace {

// Runs a part of a test in a thread to which O_TMPFILE is refused.
template <class F>
void without_tmpfile(F&& part) {
  std::async(std::launch::async, [&] {
    if (refuse(RefusedCall::o_tmpfile))
      part();
    else
      MESSAGE("skipped: no system call can be refused here");
  }).get();
}

std::string content(const UniqueFd& fd, std::size_t bytes) {
  return read_at(fd.get(), 0, bytes, "temporary file");
}

}  // namespace

TEST_CASE("temporary file: without O_TMPFILE it has no name either, and its bytes") {
  const TempFolder folder;
  const auto check = [&] {
    const UniqueFd fd = temporary_file_in(folder.path());
    REQUIRE(fd);
    CHECK(fs::is_empty(folder.path()));
    CHECK(write_whole(fd.get(), "abc", 3, 0) == 0);
    CHECK(content(fd, 9) == "abc");
    struct stat st {};
    CHECK(fstat(fd.get(), &st) == 0);
    CHECK((st.st_mode & 0777) == 0600);
    const std::string text = "some bytes";
    CHECK(content(temporary_file(std::as_bytes(std::span(text))), 99) == text);
    const UniqueFd none = temporary_file_in(folder / "none");
    const int error = errno;
    CHECK_FALSE(none);
    CHECK(error == ENOENT);
  };
  check();
  without_tmpfile(check);
}

TEST_CASE("temporary file: without O_TMPFILE, packed archives and members, items and rows") {
  const TempFolder folder;
  const std::string text(300'000, 'a');
  test::write_bytes(folder.file("a.bin"), text);
  const auto shell = [&](const std::string& command) {
    return std::system(("cd " + folder.path() + " && " + command).c_str()) == 0;
  };
  REQUIRE(shell("tar czf a.tar.gz a.bin"));
  REQUIRE(
      shell("python3 -c \"import zipfile as z; "
            "z.ZipFile('a.zip', 'w', z.ZIP_DEFLATED).write('a.bin')\""));
  without_tmpfile([&] {
    const FileReader reader({.buffer = 1 << 16, .whole = 1 << 16});
    BufferPool pool(0);
    for (const char* name : {"a.tar.gz", "a.zip"}) {
      CAPTURE(std::string(name));
      const auto file = std::make_shared<const FileRef>(located(folder / name + "/a.bin"));
      REQUIRE(file->part);
      CHECK(file->part->problem == "");
      const auto read = reader.read(file, pool);
      REQUIRE(read);
      CHECK(read_at((*read)->fd.get(), (*read)->begin, (*read)->size, name) == text);
    }
    auto file = std::make_shared<FileRef>();
    file->size = 10;  // more come
    const auto item = as_raw_bytes(file, std::as_bytes(std::span(text)), pool, 1 << 16);
    REQUIRE(item);
    CHECK(content((*item)->fd, text.size() + 1) == text);
    NpyFile rows(folder / "out.npy", NumberType::float32, 4, Existing::refuse);
    rows.spill().put(text.data(), text.size(), 0);
    std::string back(text.size(), '\0');
    rows.spill().get(back.data(), back.size(), 0);
    CHECK(back == text);
  });
}

}  // namespace temporary_file_test
