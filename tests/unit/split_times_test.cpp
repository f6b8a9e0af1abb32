#include "stages/split_times.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "pipeline/stage/ledger.h"
#include "pipeline/stage/reach.h"

namespace melflow::split_times_test {
namespace {

// Files 0 and 1 of one split, 2 of the next, 3 of none.
Manifest corpus() {
  Manifest out;
  const std::uint32_t folder = out.add_folder("");
  for (std::size_t i = 0; i < 4; ++i) out.add(folder, std::to_string(i));
  for (std::size_t i = 0; i < 3; ++i) REQUIRE(out.set_split(i, i < 2 ? "train" : "test"));
  return out;
}

struct Corpus {
  Manifest manifest = corpus();
  Ledger ledger;
  Reach reach = Reach::plain(1, 1);
  Corpus() { ledger.open(manifest.size(), {"test"}); }
  // The last rows of a file arrive.
  void write(SplitTimes& times, std::size_t file, SplitTimes::Clock::time_point begin) {
    const auto part = std::make_shared<MelPart>();
    part->row_count = 10;
    MelBatch rows;
    rows.parts = {part};
    Origins files{{nullptr, std::make_shared<Stream>(ledger, Stream::Records{file}, 0, reach)}};
    times.wrote(rows, files, begin);
    files.front().stream->sink_done(0);
  }
};

}  // namespace

TEST_CASE("split times: every split with rows has a time, in whatever order its rows arrive") {
  Corpus corpus;
  SplitTimes times(corpus.manifest);
  const auto begin = SplitTimes::Clock::now();
  // The last rows of "train" come after those of the splits behind it.
  for (const std::size_t file : {0, 2, 3, 1}) corpus.write(times, file, SplitTimes::Clock::now());
  const double all = std::chrono::duration<double>(SplitTimes::Clock::now() - begin).count();
  const std::vector<SplitTimes::Times> got = times.all(corpus.manifest.split_ranges());
  REQUIRE(got.size() == 3);
  double sum = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i].seconds > 0);
    CHECK(got[i].write_seconds >= 0);
    CHECK(got[i].files == (i == 0 ? 2 : 1));
    CHECK(got[i].rows == (i == 0 ? 20 : 10));
    sum += got[i].seconds;
  }
  CHECK(sum <= all + 1e-6);
}

TEST_CASE("split times: a split without rows has none") {
  Corpus corpus;
  SplitTimes times(corpus.manifest);
  corpus.write(times, 0, SplitTimes::Clock::now());
  const std::vector<SplitTimes::Times> got = times.all(corpus.manifest.split_ranges());
  CHECK(got[0].seconds > 0);
  CHECK(got[1].seconds == 0);
  CHECK(got[2].seconds == 0);
}

}  // namespace melflow::split_times_test
