// Checks what a run allocates from the system for one more file: no buffers, which come from the
// pool, and few small objects for bookkeeping. Its own program, because it counts every `new`.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>

#include "tests/support/audio_files.h"
#include "tests/support/counted_new.h"
#include "tests/support/job.h"
#include "tests/support/temp_folder.h"

namespace {

// [bytes]; smaller allocations are bookkeeping: the parts of a batch of eight files are a list of
// 1,280. Samples and rows of a file are more than ten times as large.
constexpr std::size_t kLarge = 2048;
std::atomic<long> g_small{0}, g_large{0};

}  // namespace

void* melflow::test::allocate(std::size_t size, std::size_t alignment) {
  (size < kLarge ? g_small : g_large).fetch_add(1, std::memory_order_relaxed);
  return allocate_from_system(size, alignment);
}

using namespace melflow;
using namespace melflow::test;

namespace {

// One worker: with more, lists of rows that wait for an earlier file grow as threads take turns.
constexpr const char* kPipeline = R"(version: 1
memory: {host: 64MiB}
workers: 1
graph:
  files:   {stage: file_list, root: "${DATA}"}
  read:    {stage: disk_read, from: files}
  decode:  {stage: decode, from: read}
  segment: {stage: segment, from: decode, long: {length: 1024, hop: 512}, short: {length: 512, hop: 256}}
  batch:   {stage: batch, from: segment}
  mel:     {stage: mel, from: batch, sample_rate: 8000, n_fft: 512, n_mels: 32, center: false, log: db}
  write:   {stage: hdf5_write, from: mel, path: "${OUT}", overwrite: true}
)";

struct Allocations {
  long small = 0, large = 0;
};

Allocations of_run(const TempFolder& folder, const std::string& clips) {
  const long small = g_small, large = g_large;
  completed(run_job(kPipeline, in_out(folder / clips, folder / "out.h5")));
  return {g_small - small, g_large - large};
}

}  // namespace

TEST_CASE("steady state: a file takes no large memory from the system, and few small objects") {
  const TempFolder folder;
  constexpr long kFew = 300, kMany = 1500;
  for (long i = 0; i < kMany; ++i) {
    write_wav(folder.file(fmt::format("many/{:04}.wav", i)), 20'000, 8000);
    if (i < kFew) write_wav(folder.file(fmt::format("few/{:04}.wav", i)), 20'000, 8000);
  }
  of_run(folder, "few");  // for everything that is made once per process
  const Allocations few = of_run(folder, "few"), many = of_run(folder, "many");
  const auto per_file = [](long a, long b) {
    return static_cast<double>(b - a) / static_cast<double>(kMany - kFew);
  };
  MESSAGE("a file: " << per_file(few.small, many.small) << " small, "
                     << per_file(few.large, many.large) << " large");
  // Tables with a line per file grow now and then, and so does the pool when more files than ever
  // before are in flight.
  CHECK(per_file(few.large, many.large) < 0.1);
  CHECK(per_file(few.small, many.small) < 26);
}
