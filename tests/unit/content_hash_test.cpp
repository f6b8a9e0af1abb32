#include "stages/files/content_hash.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "stages/files/unique_fd.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::content_hash_test {
namespace {

std::uint64_t hash_of(const std::string& text) {
  return content_hash(std::as_bytes(std::span(text)));
}

std::string text_of(std::size_t bytes) {
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(i * 31 % 251);
  return out;
}

}  // namespace

TEST_CASE("content hash: it is XXH3") {
  // The empty case is from the algorithm's own test vectors, the others are by Python's xxhash:
  //   xxhash.xxh3_64_intdigest(bytes(i * 31 % 251 for i in range(n)))
  const std::pair<std::size_t, std::uint64_t> cases[] = {{0, 0x2d06800538d394c2},
                                                         {1, 0xc44bdff4074eecdb},
                                                         {222, 0x4d2bf1e2b252ce4f},
                                                         {2367, 0x39f7989b0965cec7},
                                                         {70000, 0xd91fbfcaab7eed82}};
  const TempFolder folder;
  for (const auto& c : cases) {
    const auto bytes = c.first;
    CAPTURE(bytes);
    CHECK(hash_of(text_of(bytes)) == c.second);
    CHECK(content_hash_of(folder.write("a.bin", text_of(bytes))) == c.second);
  }
}

TEST_CASE("content hash: a file has that of its bytes, whatever its length") {
  const TempFolder folder;
  constexpr std::size_t kBuffer = 64 << 10;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, kBuffer - 1,
                                  kBuffer, kBuffer + 1, 3 * kBuffer + 7}) {
    CAPTURE(bytes);
    std::string text = text_of(bytes);
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
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  for (const std::string& path : {folder / "fifo", std::string("/dev/null")}) {
    int error = 0;
    CHECK(content_hash_of(path, &error) == 0);
    CHECK(error == EINVAL);
  }
  CHECK(content_hash(-1) == 0);
}

}  // namespace melflow::test::content_hash_test
