#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include "stages/audio/store/feed_choice.h"
#include "tests/support/audio_files.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::feed_choice_test {

TEST_CASE("feed choice: the rules, in their order") {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  // Used often, compressed, cold, with space on the disk.
  const FeedFacts often{.uses = 5,
                        .sampled = 64,
                        .cached = 0,
                        .warm = 0.0,
                        .is_plain = false,
                        .file_bytes = kGiB,
                        .decoded_bytes = 4 * kGiB,
                        .disk_free = 100 * kGiB,
                        .memory_free = 16 * kGiB};
  struct Row {
    const char* what;
    std::function<void(FeedFacts&)> change;
    bool caches;
    const char* says;
  };
  const Row rows[] = {
      {"as it is", [](FeedFacts&) {}, true, "used 5 times"},
      {"used once", [](FeedFacts& f) { f.uses = 1; }, false, "used once"},
      {"used once, with a cache", [](FeedFacts& f) { f.uses = 1, f.cached = 0.5; }, true,
       "a valid cache holds 50 % of 64 sampled files"},
      {"with a cache, on a full disk", [](FeedFacts& f) { f.cached = 1, f.disk_free = 0; }, true,
       "a valid cache"},
      {"too little disk", [](FeedFacts& f) { f.disk_free = 4 * kGiB; }, false,
       "would take about 4.0 GiB, of the 4.0 GiB free"},
      {"plain and warm", [](FeedFacts& f) { f.is_plain = true, f.warm = 1; }, false, "page cache"},
      {"plain and cold", [](FeedFacts& f) { f.is_plain = true; }, true, "used 5 times"},
      {"plain, nobody knows if warm",
       [](FeedFacts& f) { f.is_plain = true, f.warm = std::nullopt; }, true, "used 5 times"},
      {"plain, warm, but it will not stay",
       [](FeedFacts& f) { f.is_plain = true, f.warm = 1, f.memory_free = kGiB; }, true,
       "used 5 times"},
      {"compressed and warm", [](FeedFacts& f) { f.warm = 1; }, true, "used 5 times"},
      {"nothing can be decoded", [](FeedFacts& f) { f.sampled = 0; }, false, "none of the sampled"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    FeedFacts facts = often;
    row.change(facts);
    const FeedChoice choice = choose_feed(facts);
    CHECK(choice.caches == row.caches);
    CHECK_MESSAGE(choice.why.find(row.says) != std::string::npos, choice.why);
  }
}

namespace {

Value settings_with_rate(const char* rate) {
  Value decode = Value::map({}), resample = Value::map({});
  decode.set("stage", Value::scalar("decode"));
  resample.set("stage", Value::scalar("resample"));
  resample.set("rate", Value::scalar(rate));
  return Value::list({decode, resample});
}

void drop_from_page_cache(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  REQUIRE(fd >= 0);
  ::fsync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

}  // namespace

TEST_CASE("feed choice: what is found out about a corpus") {
  const TempFolder folder;
  Manifest manifest(folder.folder("clips"));
  const auto number = manifest.add_folder("");
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < 200; ++i) {
    const std::string name = std::to_string(i) + ".wav";
    write_wav(folder / "clips/" + name, 8000, 16000, i);
    bytes += std::filesystem::file_size(folder / "clips/" + name);
    manifest.add(number, name);
  }
  manifest.close();
  const CachePlace place = cache_place(folder / "not/yet/there", Value::list({}));
  const FeedFacts own = look_at_corpus(manifest, Value::list({}), place, 3);
  CHECK(own.uses == 3);
  CHECK(own.sampled >= 60);
  CHECK(own.sampled <= 70);
  CHECK(own.file_bytes == bytes);
  CHECK(own.decoded_bytes == 200 * 8000 * 2);
  CHECK(own.is_plain);
  CHECK(own.cached == 0);
  CHECK(own.disk_free > 0);
  CHECK(own.memory_free > 0);
  if (own.warm) CHECK(*own.warm == 1);

  // At half the rate there are half as many samples, as float32.
  const FeedFacts half = look_at_corpus(manifest, settings_with_rate("8000"), place, 3);
  CHECK(half.decoded_bytes == 200 * 4000 * 4);
  CHECK_FALSE(half.is_plain);
  CHECK(look_at_corpus(manifest, settings_with_rate("16000"), place, 3).is_plain);

  for (unsigned i = 0; i < 200; ++i)
    drop_from_page_cache(folder / "clips/" + std::to_string(i) + ".wav");
  const FeedFacts cold = look_at_corpus(manifest, Value::list({}), place, 3);
  // Not every file system drops pages, or reports them.
  if (cold.warm) MESSAGE("share in the page cache after it was dropped: " << *cold.warm);
}

}  // namespace melflow::test::feed_choice_test
