// The protection against overruns that compiler and linker were told to build into the program
// (CMakeLists.txt).
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/apps/process.h"

namespace melflow::test::hardening_test {

TEST_CASE("hardening: all is position independent, its tables read-only, its calls checked") {
  const TempFolder folder;
  const std::string program = MELFLOW_PROGRAM;
  const std::string library =
      std::filesystem::path(program).parent_path() / "../lib/libmelflow.so.0";
  const auto read = [&](const char* what, const std::string& file) {
    return exits(0, run(folder, {"/usr/bin/env", "readelf", "-W", what, file})).out;
  };
  struct Row {
    const std::string& file;
    const char *where, *part, *meaning;
  };
  const Row rows[] = {
      {program, "-h", "DYN (Position-Independent Executable file)",
       "loaded at an address of chance"},
      {program, "-d", "Flags: NOW PIE", "likewise, and filled in before the first line runs"},
      {library, "-d", "Flags: NOW", "likewise"},
      {program, "-l", " GNU_RELRO ", "what the loader fills in is read-only afterwards"},
      {library, "-l", " GNU_RELRO ", "likewise"},
      {library, "--dyn-syms", " __stack_chk_fail@", "frames of functions have a guard"},
      {library, "--dyn-syms", "_chk@GLIBC", "calls that fill a buffer know its size"},
      {library, "--dyn-syms", "__glibcxx_assert_fail",
       "an index of a container is held against its size"},
  };
  for (const Row& row : rows) {
    INFO(row.file << ": " << row.meaning);
    CHECK(read(row.where, row.file).find(row.part) != std::string::npos);
  }
  for (const std::string& file : {program, library}) {
    const std::string segments = read("-l", file);
    const std::string stack = segments.substr(segments.find("GNU_STACK"));
    CHECK(stack.substr(0, stack.find('\n')).find(" RW ") != std::string::npos);  // and not RWE
  }
}

}  // namespace melflow::test::hardening_test
