// What tar_write writes that the tests in Python cannot come by: members beyond 8 GiB, read by tar,
// and names.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "pipeline/base/problem.h"
#include "stages/output/formats/tar_shards.h"
#include "stages/output/recording_names.h"
#include "tests/apps/process.h"

namespace melflow::test::tar_shards_test {

TEST_CASE("tar: names and sizes of any length are read by tar") {
  struct Row {
    std::size_t name;
    std::uint64_t size;
  };
  for (const Row& row : {Row{1, 0},
                         {100, 511},
                         {101, 512},
                         {900, 1},
                         {9, (1ULL << 33) - 1},
                         {9, 1ULL << 33},
                         {80, 1ULL << 36}}) {
    CAPTURE(row.name);
    CAPTURE(row.size);
    const TempFolder folder;
    const std::string name = std::string(row.name - 1, 'n') + "x",
                      header = tar_header(name, row.size);
    CHECK(header.size() % 512 == 0);
    write_text(folder / "a.tar", header);  // of zeros, none of which is stored
    std::filesystem::resize_file(folder / "a.tar",
                                 header.size() + (row.size + 511) / 512 * 512 + 1024);
    const Ended listed = run(folder, {"/bin/sh", "-c", "TZ=UTC tar tvf a.tar"});
    CHECK(listed.code == 0);
    CHECK(has(listed.out, " " + std::to_string(row.size) + " 1970-01-01 "));
    CHECK(listed.out.ends_with(" " + name + "\n"));
  }
}

TEST_CASE("tar: the lengths of pax records count themselves") {
  for (std::size_t length = 101; length < 1200; ++length) {
    const std::string header = tar_header(std::string(length, 'a'), 0);
    const std::size_t said = std::stoul(header.substr(512)), end = header.find('\n', 512) + 1 - 512;
    CHECK(said == end);
  }
}

TEST_CASE("tar: braces stand for paths") {
  using Paths = std::vector<std::string>;
  CHECK(shard_paths("a.tar") == Paths{"a.tar"});
  CHECK(shard_paths("a-{08..10}.b.tar") == Paths{"a-08.b.tar", "a-09.b.tar", "a-10.b.tar"});
  CHECK(shard_paths("{7..7}") == Paths{"7"});
  for (const char* wrong : {"{", "{}", "{..}", "{1..}", "{1..02}", "{2..1}", "{a..b}", "{1..2}}",
                            "{-1..1}", "{1...2}", "{0000000000..0000000001}", "}{1..2"}) {
    CAPTURE(std::string(wrong));
    CHECK_THROWS_AS((void)shard_paths(wrong), RunError);
  }
}

TEST_CASE("names of recordings: each once, without what ends a key") {
  using Names = std::vector<std::string>;
  CHECK(recording_names({"a/b c.1.wav", "/x/../y.flac", "talk.flac#t=12.5,15", "d.1/e", ".wav",
                         "x/.ogg"}) == Names{"a/b%20c%2E1", "x/%2E%2E/y",
                                             "talk%2Eflac%23t=12%2E5,15", "d.1/e", "%2Ewav",
                                             "x/%2Eogg"});
  CHECK(recording_names({"a.wav", "a.mp3", "a", "b.wav"}) == Names{"a%2Ewav", "a%2Emp3", "a", "b"});
  CHECK(recording_names({"a%2Ewav", "a%.wav", "a%.mp3"}) ==
        Names{"a%252Ewav", "a%25%2Ewav", "a%25%2Emp3"});
  CHECK(recording_names({"a", "a", "a-1"}) == Names{"a", "a-1", "a-1-1"});
}

}  // namespace melflow::test::tar_shards_test
