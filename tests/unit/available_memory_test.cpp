#include <doctest/doctest.h>

#include <algorithm>

#include "pipeline/base/available_memory.h"
#include "pipeline/base/cpu.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::available_memory_test {

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
  // The group above has the limit: 1 GiB, 600 MiB used, 200 of these page cache.
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

TEST_CASE("memory limit: the machine's memory, or the smallest limit of a control group") {
  constexpr std::uint64_t kMiB = 1 << 20;
  const TempFolder root;
  const std::string groups = root.path() + "/sys/fs/cgroup/";
  root.write("proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n");
  CHECK(memory_limit(root.path()).bytes == 16384 * kMiB);
  CHECK(memory_limit(root.path()).file == "");
  root.write("proc/self/cgroup", "0::/job/part\n");
  root.write("sys/fs/cgroup/job/part/memory.max", "max\n");
  root.write("sys/fs/cgroup/job/memory.max", std::to_string(20000 * kMiB) + "\n");
  CHECK(memory_limit(root.path()).bytes == 16384 * kMiB);
  CHECK(memory_limit(root.path()).file == "");
  root.write("sys/fs/cgroup/job/memory.max", std::to_string(150 * kMiB) + "\n");
  CHECK(memory_limit(root.path()).bytes == 150 * kMiB);
  CHECK(memory_limit(root.path()).file == groups + "job/memory.max");
  root.write("proc/self/cgroup", "5:memory:/box\n");
  root.write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(300 * kMiB) + "\n");
  CHECK(memory_limit(root.path()).bytes == 300 * kMiB);
  // As a container sees it: its own group is the root.
  root.write("proc/self/cgroup", "0::/\n");
  root.write("sys/fs/cgroup/memory.max", std::to_string(200 * kMiB) + "\n");
  CHECK(memory_limit(root.path()).bytes == 200 * kMiB);
}

TEST_CASE("memory limit: a store leaves a share of what there is") {
  constexpr std::uint64_t kMiB = 1 << 20;
  CHECK(storable_memory(0, 0) == 0);
  CHECK(storable_memory(400 * kMiB, 0) == 300 * kMiB);
  CHECK(storable_memory(200 * kMiB, 200 * kMiB) == 300 * kMiB);
  CHECK(storable_memory(0, 400 * kMiB) == 300 * kMiB);
  CHECK(storable_memory(2048 * kMiB, 0) == 1536 * kMiB);
  CHECK(storable_memory(20000 * kMiB, 0) == 19488 * kMiB);
  CHECK(storable_memory(~std::uint64_t{0}, kMiB) > 20000 * kMiB);
}

TEST_CASE("available cores: no more than the quota of any control group, of either version") {
  const int all = available_cpus("/nowhere");
  REQUIRE(all >= 1);
  struct Row {
    const char *groups, *folder, *file, *quota, *period;
    int cores;
  };
  constexpr const char* kV1 = "7:memory:/other\n4:cpu,cpuacct:/box/part\n";
  constexpr const char* kOld = "cpu.cfs_quota_us";
  const Row rows[] = {
      {"0::/box/part\n", "box/part", "cpu.max", "50000 100000\n", "", 1},
      {"0::/box/part\n", "box", "cpu.max", "90000 100000\n", "", 1},
      {"0::/box/part\n", "box", "cpu.max", "max 100000\n", "", all},
      {"0::/box/part\n", "box", "cpu.max", "900000000 100000\n", "", all},
      {kV1, "cpu/box/part", kOld, "50000\n", "100000\n", 1},
      {kV1, "cpu/box", kOld, "90000\n", "100000\n", 1},
      {kV1, "cpu", kOld, "1000\n", "100000\n", 1},  // in a container that sees only its own group
      {kV1, "cpu/box", kOld, "110000\n", "100000\n", std::min(all, 2)},
      {kV1, "cpu/box", kOld, "-1\n", "100000\n", all},
      {kV1, "cpu/box", kOld, "100000\n", "0\n", all},
      {kV1, "memory/other", kOld, "1000\n", "100000\n", all},
      {"4:cpuset:/box/part\n", "cpu/box", kOld, "1000\n", "100000\n", all},
  };
  for (const Row& row : rows) {
    const TempFolder root;
    root.write("proc/self/cgroup", row.groups);
    const std::string folder = std::string("sys/fs/cgroup/") + row.folder;
    root.write(folder + "/" + row.file, row.quota);
    if (*row.period != '\0') root.write(folder + "/cpu.cfs_period_us", row.period);
    CHECK_MESSAGE(available_cpus(root.path()) == row.cores,
                  row.groups << folder << ": " << row.quota);
  }
}

TEST_CASE("available memory: of this machine") {
  CHECK(available_memory() > (std::uint64_t{16} << 20));
  CHECK(available_memory() < (std::uint64_t{1} << 50));
}

}  // namespace melflow::test::available_memory_test
