#include <doctest/doctest.h>

#include "pipeline/available_memory.h"
#include "tests/support/temp_folder.h"

namespace available_memory_test {

using namespace melflow;
using namespace melflow::test;

TEST_CASE("available memory: what the system has, as far as control groups leave it") {
  constexpr std::uint64_t kMiB = 1 << 20;
  const TempFolder root;
  root.write("proc/meminfo",
             "MemTotal:       16777216 kB\nMemFree:         1048576 kB\n"
             "MemAvailable:    8388608 kB\n");
  CHECK(available_memory(root.path()) == 8192 * kMiB);

  root.write("proc/self/cgroup", "0::/job/part\n");
  root.write("sys/fs/cgroup/job/part/memory.max", "max\n");
  root.write("sys/fs/cgroup/job/part/memory.current", "1048576\n");
  CHECK(available_memory(root.path()) == 8192 * kMiB);
  // The group above limits: 1 GiB, 600 MiB used, 200 of them page cache.
  root.write("sys/fs/cgroup/job/memory.max", std::to_string(1024 * kMiB) + "\n");
  root.write("sys/fs/cgroup/job/memory.current", std::to_string(600 * kMiB) + "\n");
  root.write("sys/fs/cgroup/job/memory.stat",
             "anon 1\nfile " + std::to_string(200 * kMiB) + "\nfile_mapped 5\n");
  CHECK(available_memory(root.path()) == 624 * kMiB);
  root.write("sys/fs/cgroup/job/part/memory.max", std::to_string(100 * kMiB) + "\n");
  CHECK(available_memory(root.path()) == 99 * kMiB);
  root.write("sys/fs/cgroup/job/part/memory.current", std::to_string(200 * kMiB) + "\n");
  CHECK(available_memory(root.path()) == 0);

  root.write("proc/self/cgroup", "7:cpu:/x\n5:memory:/box\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
  CHECK(available_memory(root.path()) == 8192 * kMiB);
  root.write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(300 * kMiB) + "\n");
  root.write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(50 * kMiB) + "\n");
  root.write("sys/fs/cgroup/memory/box/memory.stat",
             "cache 1\ntotal_cache " + std::to_string(20 * kMiB) + "\n");
  CHECK(available_memory(root.path()) == 270 * kMiB);
}

TEST_CASE("available memory: of this machine") {
  CHECK(available_memory() > (std::uint64_t{16} << 20));
  CHECK(available_memory() < (std::uint64_t{1} << 50));
}

}  // namespace available_memory_test
