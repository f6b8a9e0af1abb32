// The message about a path that does not exist: the nearest name, the files that may be meant, or
// the missing folder.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "pipeline/base/input_file.h"
#include "tests/support/temp_folder.h"

namespace melflow::no_such_file_test {

TEST_CASE("no such file: the nearest name in its folder, with the path as it was given") {
  const test::TempFolder folder;
  folder.write("features.h5", "");
  folder.write("clips.txt", "");
  std::filesystem::create_directory(folder / "clips");
  CHECK(no_such_file(folder / "faetures.h5", {".h5"}) ==
        "there is no such file. Did you mean '" + (folder / "features.h5") + "'?");
  CHECK(near_path(folder / "clip") == ". Did you mean '" + (folder / "clips") + "'?");
  CHECK(near_path(folder / "clip/") == ". Did you mean '" + (folder / "clips") + "'?");
  CHECK(near_path(folder / "quite_another_name").empty());
  folder.write("a.csv", "");
  CHECK(near_path(folder / "b.csv").empty());
}

TEST_CASE("no such file: else the files of its kind that are beside it, five at most") {
  const test::TempFolder folder;
  folder.write("note.txt", "");
  CHECK(no_such_file(folder / "quite_another_name.h5", {".h5", ".npy"}) ==
        "there is no such file; its folder has no file that ends in .h5, .npy");
  for (const char* name : {"b.h5", "a.npy", "c.h5", "d.h5", "e.h5", "f.h5", "g.h5"})
    folder.write(name, "");
  CHECK(no_such_file(folder / "quite_another_name.h5", {".h5", ".npy"}) ==
        "there is no such file; its folder has a.npy, b.h5, c.h5, d.h5, e.h5 and 2 more");
}

TEST_CASE("no such file: a folder that is not there is said, and the one that is near") {
  const test::TempFolder folder;
  std::filesystem::create_directory(folder / "outputs");
  CHECK(no_such_file(folder / "output/a.h5", {".h5"}) ==
        "there is no folder " + (folder / "output") + ". Did you mean '" + (folder / "outputs") +
            "'?");
  CHECK(no_such_file(folder / "x/y/a.h5", {".h5"}) == "there is no folder " + (folder / "x/y"));
}

}  // namespace melflow::no_such_file_test
