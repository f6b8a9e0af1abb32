// A cache that several processes use, with the whole program.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "tests/apps/process.h"
#include "tests/apps/sound.h"

namespace melflow::test::feed_test {
namespace {

void write_pipeline(const TempFolder& folder, const std::string& name, const std::string& feed) {
  test::write_text(
      folder / (name + ".yaml"),
      fmt::format("version: 1\n"
                  "workers: 2\n"
                  "graph:\n"
                  "  files: {{stage: file_list, root: clips{}}}\n"
                  "  read: {{stage: disk_read, from: files}}\n"
                  "  decode: {{stage: decode, from: read}}\n"
                  "  resample: {{stage: resample, from: decode, rate: 11025, quality: very_high}}\n"
                  "  segment: {{stage: segment, from: resample}}\n"
                  "  batch: {{stage: batch, from: segment, files: 4}}\n"
                  "  mel: {{stage: mel, from: batch, n_fft: 512, hop: 256, n_mels: 32, log: db}}\n"
                  "  write: {{stage: npy_write, from: mel, path: {}.npy, overwrite: true}}\n",
                  feed, name));
}

std::vector<std::string> command(const std::string& name) {
  return {MELFLOW_PROGRAM, "run", name + ".yaml", "--json", "-q"};
}

// Returns the source's summary of its feed.
nlohmann::json feed_of(const Ended& e) {
  return nlohmann::json::parse(e.out)["stages"][0]["summary"];
}

std::uintmax_t cache_size(const TempFolder& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cache", ignored))
    return entry.file_size(ignored);
  return 0;
}

void make_clips(const TempFolder& folder, int count) {
  for (int i = 0; i < count; ++i)
    test::write_clip(folder / fmt::format("clips/{:03}.wav", i), 16000, 3,
                     static_cast<unsigned>(i));
}

}  // namespace

TEST_CASE("feed: two processes that build one cache are both right") {
  const TempFolder folder, other;
  make_clips(folder, 200);
  write_pipeline(folder, "plain", "");
  write_pipeline(folder, "one", ", feed: cache, cache_path: cache");
  write_pipeline(folder, "two", ", feed: cache, cache_path: cache");
  REQUIRE(run(folder, command("plain")).code == 0);
  Process one(folder, command("one"));
  // The other process runs in its own folder, on the same files and cache.
  std::filesystem::copy_file(folder / "two.yaml", other / "two.yaml");
  std::filesystem::create_directory_symlink(folder / "clips", other / "clips");
  one.wait_until([&] { return cache_size(folder) > 0; });
  std::filesystem::create_directory_symlink(folder / "cache", other / "cache");
  Process two(other, command("two"));
  const Ended first = one.wait(), second = two.wait();
  REQUIRE(first.code == 0);
  REQUIRE(second.code == 0);
  CHECK(read_text(folder / "one.npy") == read_text(folder / "plain.npy"));
  CHECK(read_text(other / "two.npy") == read_text(folder / "plain.npy"));
  CHECK(feed_of(first)["added"].get<int>() == 200);
  CHECK(feed_of(second)["added"].get<int>() + feed_of(second)["from_cache"].get<int>() <= 200);
  CHECK(feed_of(run(folder, command("one")))["from_cache"].get<int>() == 200);
}

}  // namespace melflow::test::feed_test
