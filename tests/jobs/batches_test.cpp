// Whole jobs that end in the stage batches, with a program that takes these, slowly or not at all.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "config/load.h"
#include "pipeline/runner.h"
#include "stages/manifest.h"
#include "stages/output/training/sample_batch.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/temp_folder.h"
#include "tests/support/watchdog.h"

using namespace melflow;
using namespace melflow::test;

namespace {

struct Options {
  std::string memory = "64MiB", segment = "length: 2000, hop: 500", batches = "size: 7";
  int workers = 2;
  std::uint64_t epoch = 0, skip = 0;
  std::size_t rank = 0, ranks = 1;
  std::optional<std::uint64_t> order = std::nullopt;
  std::size_t takes = static_cast<std::size_t>(-1);  ///< batches; then nobody takes any
  std::string nodes = {}, from = "mel";  ///< nodes behind batch, and the one whose rows are taken
  std::size_t columns = 8;               ///< of its rows
  bool has_two_sources = false;          ///< the files by two nodes, in the same order
};

struct Taken {
  std::vector<std::string> samples;  ///< where they are from, and their bytes
  std::vector<std::size_t> sizes;
  RunReport report;
};

Taken run(const TempFolder& folder, const Options& o) {
  LoadOptions load;
  load.workers = o.workers;
  const std::string root = folder / "clips";
  const std::string files =
      o.has_two_sources
          ? fmt::format(
                "  low: {{stage: file_list, root: \"{0}\", include: [\"0*\"]}}\n"
                "  high: {{stage: file_list, root: \"{0}\", include: [\"1*\", \"2*\"]}}\n"
                "  files: {{stage: merge, from: [low, high]}}\n",
                root)
          : fmt::format("  files: {{stage: file_list, root: \"{}\"}}\n", root);
  Plan plan = load_plan_text(
      fmt::format("version: 1\nmemory: {{host: {}}}\ngraph:\n{}"
                  "  read: {{stage: disk_read, from: files}}\n"
                  "  decode: {{stage: decode, from: read, truncated: fail, block: 64KiB}}\n"
                  "  segment: {{stage: segment, from: decode, {}}}\n"
                  "  batch: {{stage: batch, from: segment, files: 3}}\n"
                  "  mel: {{stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 80, "
                  "n_mels: 8}}\n{}"
                  "  out: {{stage: batches, from: {}, {}}}\n",
                  o.memory, files, o.segment, o.nodes, o.from, o.batches),
      "test.yaml", load);
  auto queue = std::make_shared<BatchQueue>(2);
  plan.services.add(std::make_shared<BatchDelivery>(
      BatchDelivery{queue, nullptr, o.epoch, o.skip, "", o.rank, o.ranks}));
  if (o.order) plan.services.add(std::make_shared<ListOrder>(ListOrder{*o.order}));
  const auto* source = dynamic_cast<const ManifestSource*>(plan.nodes.front().stage.get());
  Runner runner(std::move(plan));
  const Watchdog watchdog("batches");
  Taken out;
  std::vector<SampleBatch> kept;
  std::jthread consumer([&] {
    SampleBatch batch;
    while (kept.size() < o.takes) {
      const BatchQueue::State state = queue->take(batch, 0.05);
      if (state == BatchQueue::State::ended) return;
      if (state == BatchQueue::State::batch) kept.push_back(std::move(batch));
    }
    queue->close();
    runner.stop();
  });
  out.report = runner.run();
  queue->end();
  consumer.join();
  for (const SampleBatch& b : kept) {
    out.sizes.push_back(b.files.size());
    std::size_t bytes = size_of(b.type);
    for (std::size_t i = 1; i < b.shape.size(); ++i) bytes *= b.shape[i];
    CHECK(b.shape[0] == b.files.size());
    for (std::size_t i = 0; i < b.files.size(); ++i) {
      const std::size_t listed = source->manifest().listed(static_cast<std::size_t>(b.files[i]));
      const std::size_t used =
          b.lengths.empty() ? bytes : static_cast<std::size_t>(b.lengths[i]) * o.columns * 4;
      out.samples.push_back(
          fmt::format("{} {} ", listed, b.offsets[i]) +
          std::string(reinterpret_cast<const char*>(b.data.data()) + i * bytes, used));
    }
  }
  return out;
}

// Clips of many lengths, one that takes many blocks, one broken in the middle, one without samples.
void write_clips(const TempFolder& folder) {
  for (unsigned i = 0; i < 24; ++i)
    write_wav(folder.file(fmt::format("clips/{:02}.wav", i)), 3000 + 900 * (i * 7 % 24), 8000, i);
  write_wav(folder.file("clips/03b.wav"), 400'000, 8000, 99);
  write_wav(folder.file("clips/05b.wav"), 300'000, 8000, 98);
  std::filesystem::resize_file(folder / "clips/05b.wav", 300'000);
  write_wav(folder.file("clips/06b.wav"), 0, 8000);
}

std::vector<std::string> sorted(std::vector<std::string> v) {
  std::sort(v.begin(), v.end());
  return v;
}

}  // namespace

TEST_CASE("batches: what comes does not depend on workers, and a broken recording gives nothing") {
  const TempFolder folder;
  write_clips(folder);
  for (const std::string& segment : std::vector<std::string>{"length: 2000, hop: 500", ""}) {
    CAPTURE(segment);
    for (const std::string& batches :
         std::vector<std::string>{"size: 7", "size: 7, shuffle: 20, seed: 3"}) {
      CAPTURE(batches);
      const Taken one = run(folder, {.segment = segment, .batches = batches, .workers = 1});
      CHECK(one.report.counts.ok == 25);
      CHECK(one.report.counts.failed == 1);
      CHECK(one.report.counts.skipped == 1);
      CHECK(one.samples.size() >= (segment.empty() ? 25U : 500U));
      for (std::size_t i = 0; i + 1 < one.sizes.size(); ++i) CHECK(one.sizes[i] == 7);
      for (const int workers : {2, 5})
        CHECK(run(folder, {.segment = segment, .batches = batches, .workers = workers}).samples ==
              one.samples);
      const Taken skipped = run(folder, {.segment = segment, .batches = batches, .skip = 10});
      CHECK(std::equal(skipped.samples.begin(), skipped.samples.end(), one.samples.begin() + 10,
                       one.samples.end()));
    }
  }
}

TEST_CASE("batches: every sample comes once, in another order for every epoch") {
  const TempFolder folder;
  write_clips(folder);
  const Taken listed = run(folder, {});
  std::vector<std::vector<std::string>> orders{listed.samples};
  for (const std::uint64_t epoch : {0U, 1U})
    orders.push_back(run(folder, {.batches = "size: 9, shuffle: 40", .epoch = epoch}).samples);
  orders.push_back(run(folder, {.order = 4}).samples);
  for (std::size_t i = 1; i < orders.size(); ++i) {
    CHECK(sorted(orders[i]) == sorted(listed.samples));
    for (std::size_t j = 0; j < i; ++j) CHECK(orders[i] != orders[j]);
  }
  std::vector<std::string> together;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const Taken part = run(folder, {.rank = rank, .ranks = 3, .order = 4});
    together.insert(together.end(), part.samples.begin(), part.samples.end());
  }
  CHECK(sorted(together) == sorted(listed.samples));
}

TEST_CASE("batches: a bucket puts recordings of similar length together") {
  const TempFolder folder;
  write_clips(folder);
  const std::string shuffled = "size: 4, shuffle: 20, seed: 3";
  const Taken plain = run(folder, {.segment = "", .batches = shuffled});
  const Taken one = run(folder, {.segment = "", .batches = shuffled + ", bucket: 8", .workers = 1});
  CHECK(sorted(one.samples) == sorted(plain.samples));
  CHECK(run(folder, {.segment = "", .batches = shuffled + ", bucket: 8", .workers = 5}).samples ==
        one.samples);
  // The buckets have what the shuffle gave, in the order of lengths, rising and falling in turn.
  for (std::size_t first = 0; first < one.samples.size(); first += 8) {
    const std::size_t end = std::min(one.samples.size(), first + 8);
    const std::vector<std::string> bucket(one.samples.begin() + static_cast<std::ptrdiff_t>(first),
                                          one.samples.begin() + static_cast<std::ptrdiff_t>(end));
    CHECK(sorted(bucket) == sorted({plain.samples.begin() + static_cast<std::ptrdiff_t>(first),
                                    plain.samples.begin() + static_cast<std::ptrdiff_t>(end)}));
    for (std::size_t i = 1; i < bucket.size(); ++i)
      CHECK((first / 8 % 2 == 0 ? bucket[i - 1].size() <= bucket[i].size() + 1
                                : bucket[i - 1].size() + 1 >= bucket[i].size()));
  }
  const Taken skipped =
      run(folder, {.segment = "", .batches = shuffled + ", bucket: 8", .skip = 11});
  CHECK(std::equal(skipped.samples.begin(), skipped.samples.end(), one.samples.begin() + 11,
                   one.samples.end()));
  CHECK_THROWS_WITH_AS(run(folder, {.segment = "length: 2000", .batches = "bucket: 8"}),
                       doctest::Contains("bucket: is for whole recordings"), ConfigError);
}

TEST_CASE("batches: whoever keeps them does not stop the run, nor does who takes no more") {
  const TempFolder folder;
  write_clips(folder);
  // What is kept is more than the budget.
  const Taken all = run(folder, {.memory = "14MiB", .segment = "length: 2000, hop: 20"});
  CHECK(all.report.ending == Ending::complete);
  CHECK(all.samples.size() * 26 * 8 * 4 > (14U << 20));
  for (const std::size_t takes : {0U, 1U, 5U}) {
    const Taken part = run(folder, {.takes = takes});
    CHECK(part.sizes.size() == takes);
  }
}

TEST_CASE("batches: rows of concat are those of its inputs, side by side") {
  const TempFolder folder;
  write_clips(folder);
  const std::string wide =
      "  wide: {stage: mel, from: batch, sample_rate: 8000, n_fft: 1024, hop: 80, n_mels: 8, log: "
      "db, top_db: 20}\n";
  // "12 3 " and the values.
  const auto begin_of = [](const std::string& s) { return s.find(' ', s.find(' ') + 1) + 1; };
  constexpr std::size_t kFrame = 8 * sizeof(float);
  for (const std::string& segment : std::vector<std::string>{"length: 2000, hop: 500", ""}) {
    CAPTURE(segment);
    Options options{.segment = segment};
    const std::vector<std::string> left = run(folder, options).samples;
    options.nodes = wide + "  end: {stage: discard, from: mel}\n";
    options.from = "wide";
    const std::vector<std::string> right = run(folder, options).samples;
    REQUIRE(right.size() == left.size());
    std::vector<std::string> expected;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const std::size_t begin = begin_of(left[i]);
      std::string& both = expected.emplace_back(left[i].substr(0, begin));
      for (std::size_t at = begin; at < left[i].size(); at += kFrame)
        both += left[i].substr(at, kFrame) + right[i].substr(at, kFrame);
    }
    options.nodes = wide + "  all: {stage: concat, from: [mel, wide]}\n";
    options.from = "all";
    options.columns = 16;
    for (const int workers : {1, 4}) {
      options.workers = workers;
      CHECK(run(folder, options).samples == expected);
    }
  }
}

TEST_CASE("batches: of several sources they are those of one with the same files") {
  const TempFolder folder;
  write_clips(folder);
  for (const std::optional<std::uint64_t> order : {std::optional<std::uint64_t>(), {7}})
    for (const int workers : {1, 5}) {
      const Taken one = run(folder, {.workers = workers, .order = order});
      const Taken two = run(folder, {.workers = workers, .order = order, .has_two_sources = true});
      REQUIRE(one.samples.size() > 500);
      CHECK(two.samples == one.samples);
      CHECK(two.sizes == one.sizes);
    }
}
