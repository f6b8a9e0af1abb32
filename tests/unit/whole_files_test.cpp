#include "stages/corpus/whole_files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <string>

#include "tests/support/temp_folder.h"
#include "tests/support/watchdog.h"

namespace melflow::whole_files_test {

using Seconds = WholeFiles::Seconds;

TEST_CASE("whole files: not while they are young, whatever their time says") {
  const test::TempFolder folder;
  const std::string path = folder / "a.wav";
  WholeFiles files(Seconds(3600));
  CHECK_FALSE(files.is_whole(path));
  folder.write("a.wav", "abc");
  CHECK_FALSE(files.is_whole(path));
  // As after `cp -p` of an old file, and with a clock that is ahead.
  for (const std::time_t modified : {std::time_t{1000}, std::time_t{4000000000}}) {
    const timespec times[] = {{modified, 0}, {modified, 0}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
    CHECK_FALSE(files.is_whole(path));
  }
  CHECK(WholeFiles(Seconds(0)).is_whole(path) == false);  // its time is ahead, and it is new
}

TEST_CASE("whole files: when they have not changed for the time, by either clock") {
  const test::Watchdog watchdog("whole files");
  const test::TempFolder folder;
  folder.write("a.wav", "abc");
  const std::string path = folder / "a.wav";
  const timespec times[] = {{4000000000, 0}, {4000000000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  const auto begin = std::chrono::steady_clock::now();
  WholeFiles files(Seconds(0.05));
  while (!files.is_whole(path)) {
  }
  CHECK(Seconds(std::chrono::steady_clock::now() - begin) >= Seconds(0.05));
  CHECK(files.is_whole(path));  // also when asked again
  folder.write("a.wav", "abcd");
  CHECK_FALSE(files.is_whole(path));
}

}  // namespace melflow::whole_files_test
