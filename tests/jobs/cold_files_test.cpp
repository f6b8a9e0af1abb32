// Files that are not in the page cache, like those of a corpus that is read for the first time.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "stages/audio/reading/read_ahead.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/page_cache.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::cold_files_test {
namespace {

constexpr int kFiles = 120;

JobResult run(const TempFolder& folder, const std::string& out, const std::string& read = "") {
  return run_job(fmt::format(R"(version: 1
workers: 2
graph:
  files: {{stage: file_list, root: "${{DATA}}"}}
  read: {{stage: disk_read, from: files{}}}
  decode: {{stage: decode, from: read}}
  segment: {{stage: segment, from: decode, length: 256, hop: 64}}
  batch: {{stage: batch, from: segment, files: 3}}
  mel: {{stage: mel, from: batch, sample_rate: 16000, n_fft: 256, hop: 256, center: false, n_mels: 20}}
  write: {{stage: hdf5_write, from: mel, path: "${{OUT}}"}}
)",
                             read),
                 in_out(folder / "clips", folder / out));
}

// Returns how many of these files, after eviction from the page cache, block a reading thread.
int waited_for(const std::vector<std::string>& paths) {
  int waited = 0;
  for (const std::string& path : paths) {
    const long before = ReadAhead::waits();
    (void)read_bytes(path);
    waited += ReadAhead::waits() != before ? 1 : 0;
  }
  return waited;
}

// Returns 0 where the report does not contain it.
int loaded_ahead(const JobResult& job) {
  for (const auto& [key, value] : job.stage("read").summary)
    if (key == "loaded_ahead") return std::stoi(value.text());
  return 0;
}

}  // namespace

TEST_CASE("cold files: the next ones are loaded while workers wait, and the rows are the same") {
  const TempFolder folder;
  std::vector<std::string> paths;
  for (int i = 0; i < kFiles; ++i) {
    paths.push_back(folder.file(fmt::format("clips/{:03}.wav", i)));
    write_wav(paths.back(), 10'000, 16000, static_cast<unsigned>(i));
  }
  if (!evict(paths)) return skip("files here cannot be taken out of the page cache");
  if (waited_for(paths) < kFiles * 9 / 10) return skip("this disk is read without waiting");
  // Beside other programs workers may be ahead of it, or pages be taken from the cache again.
  constexpr int kTries = 8;
  int ahead = 0;
  for (int i = 0; i < kTries && ahead == 0; ++i) {
    REQUIRE(evict(paths));
    ahead = loaded_ahead(completed(run(folder, i == 0 ? "cold.h5" : fmt::format("{}.h5", i))));
    CHECK(ahead < kFiles);  // some were cold when a worker reached them
  }
  CHECK(ahead > 0);
  for (int i = 0; i < kTries && ahead > 0; ++i)
    ahead = loaded_ahead(run(folder, i == 0 ? "warm.h5" : fmt::format("warm{}.h5", i)));
  CHECK(ahead == 0);
  REQUIRE(evict(paths));
  CHECK(loaded_ahead(run(folder, "workers.h5", ", engine: inline")) == 0);

  const Output rows = read_output(folder / "cold.h5");
  CHECK(rows.files.size() == kFiles);
  CHECK(rows.difference(read_output(folder / "warm.h5")) == "");
  CHECK(rows.difference(read_output(folder / "workers.h5")) == "");
}

}  // namespace melflow::test::cold_files_test
