// What the compiler and the linker were told to put into the program against overruns (CMakeLists.txt), as it is built.
#include <doctest/doctest.h>

#include "tests/apps/process.h"

namespace melflow::test::hardening_test {

TEST_CASE(
    "hardening: the program is position independent, its tables read-only, its calls checked") {
  const TempFolder folder;
  const auto read = [&](const char* what) {
    return exits(0, run(folder, {"/usr/bin/env", "readelf", "-W", what, MELFLOW_PROGRAM})).out;
  };
  struct Row {
    const char *where, *part, *meaning;
  };
  const Row rows[] = {
      {"-h", "DYN (Position-Independent Executable file)", "loaded at an address of chance"},
      {"-l", " GNU_RELRO ", "what the loader fills in is read-only afterwards"},
      {"-d", "BIND_NOW", "all of it, before the first line runs"},
      {"-d", "Flags: NOW PIE", "likewise"},
      {"--dyn-syms", " __stack_chk_fail@", "frames of functions have a guard"},
      {"--dyn-syms", "_chk@GLIBC", "calls that fill a buffer know its size"},
      {"--dyn-syms", "__glibcxx_assert_fail", "an index of a container is held against its size"},
  };
  for (const Row& row : rows) {
    INFO(row.meaning);
    CHECK(read(row.where).find(row.part) != std::string::npos);
  }
  const std::string segments = read("-l");
  const std::string stack = segments.substr(segments.find("GNU_STACK"));
  CHECK(stack.substr(0, stack.find('\n')).find(" RW ") != std::string::npos);  // and not RWE
}

}  // namespace melflow::test::hardening_test
