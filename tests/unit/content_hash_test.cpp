#include "stages/files/content_hash.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <string>

#include "stages/raii/unique_fd.h"
#include "tests/support/temp_folder.h"

using namespace melflow;
using namespace melflow::test;

namespace {

std::uint64_t hash_of(const std::string& text) {
  return content_hash(std::as_bytes(std::span(text)));
}

}  // namespace

TEST_CASE("content hash: it is XXH3") {
  // Of nothing, from the algorithm's own table of checks.
  CHECK(hash_of("") == 0x2D06800538D394C2ULL);
}

TEST_CASE("content hash: a file has that of its bytes, whatever its length") {
  const TempFolder folder;
  constexpr std::size_t kBuffer = 1 << 20;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, kBuffer - 1,
                                  kBuffer, kBuffer + 1, 3 * kBuffer + 7}) {
    CAPTURE(bytes);
    std::string text(bytes, 'x');
    for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 % 251);
    const std::string path = folder.write("a.bin", text);
    CHECK(content_hash_of(path) == hash_of(text));
    const UniqueFd fd(::open(path.c_str(), O_RDONLY));
    REQUIRE(::lseek(fd.get(), 5, SEEK_SET) == 5);
    CHECK(content_hash(fd.get()) == hash_of(text));
    CHECK(::lseek(fd.get(), 0, SEEK_CUR) == 5);
    if (bytes == 0) continue;
    text.back() ^= 1;
    CHECK(content_hash_of(path) != hash_of(text));
  }
}

TEST_CASE("content hash: of what cannot be read there is none") {
  const TempFolder folder;
  CHECK(content_hash_of(folder / "none") == 0);
  CHECK(content_hash_of(folder.path()) == 0);
  CHECK(content_hash(-1) == 0);
}
