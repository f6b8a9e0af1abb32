#include "stages/files/whole_io.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <csignal>

#include "stages/files/unique_fd.h"

using namespace melflow;

namespace {

// As a profiler sends them.
class ManySignals {
 public:
  ManySignals() {
    struct sigaction take {};
    take.sa_handler = [](int) {};
    sigaction(SIGALRM, &take, &before_);
    set(1000);
  }
  ~ManySignals() {
    set(0);
    sigaction(SIGALRM, &before_, nullptr);
  }
  ManySignals(const ManySignals&) = delete;
  ManySignals& operator=(const ManySignals&) = delete;

 private:
  static void set(suseconds_t microseconds) {
    const itimerval every{{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &every, nullptr);
  }
  struct sigaction before_ {};
};

}  // namespace

TEST_CASE("whole io: room in a file in memory is made whatever signals come in") {
  constexpr std::uint64_t kBytes = 64 << 20, kFrom = 12345;
  const UniqueFd file(memfd_create("melflow-test", MFD_CLOEXEC));
  REQUIRE(file);
  {
    const ManySignals signals;
    CHECK(allocate_whole(file.get(), kFrom, kBytes) == 0);
  }
  struct stat st {};
  REQUIRE(fstat(file.get(), &st) == 0);
  CHECK(static_cast<std::uint64_t>(st.st_size) == kFrom + kBytes);
  CHECK(static_cast<std::uint64_t>(st.st_blocks) * 512 >= kBytes);
  CHECK(allocate_whole(-1, 0, 1) == EBADF);
}
