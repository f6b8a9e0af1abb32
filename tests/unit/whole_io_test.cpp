#include "stages/files/whole_io.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "stages/files/unique_fd.h"

namespace melflow::whole_io_test {
namespace {

int interruptions = 0;  // remaining interruptions
std::uint64_t most = 0;

}  // namespace

// Replaces the system's: on file systems in memory some versions of Linux let signals interrupt it.
extern "C" int posix_fallocate(int fd, off_t at, off_t bytes) {
  if (interruptions > 0 && --interruptions % 2 == 0) return EINTR;
  most = std::max(most, static_cast<std::uint64_t>(bytes));
  return fallocate(fd, 0, at, bytes) == 0 ? 0 : errno;
}

TEST_CASE("whole io: room in a file is made through interruptions, piece by piece") {
  constexpr std::uint64_t kBytes = (4 << 20) + 321, kFrom = 12345;
  const UniqueFd file(memfd_create("melflow-test", MFD_CLOEXEC));
  REQUIRE(file);
  interruptions = 7;
  most = 0;
  CHECK(allocate_whole(file.get(), kFrom, kBytes) == 0);
  CHECK(interruptions == 0);
  CHECK(most <= 1 << 20);
  struct stat st {};
  REQUIRE(fstat(file.get(), &st) == 0);
  CHECK(static_cast<std::uint64_t>(st.st_size) == kFrom + kBytes);
  CHECK(static_cast<std::uint64_t>(st.st_blocks) * 512 >= kBytes);
  CHECK(allocate_whole(-1, 0, 1) == EBADF);
}

}  // namespace melflow::whole_io_test
