// Whole jobs that end in the stage batches, with a program that takes them, slowly or not at all.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "config/load.h"
#include "pipeline/run/runner.h"
#include "pipeline/run/stage_runner.h"
#include "pipeline/stage/reach.h"
#include "stages/manifest.h"
#include "stages/training/batch_queue.h"
#include "stages/training/batch_source.h"
#include "stages/training/sample_batch.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/temp_folder.h"
#include "tests/support/watchdog.h"

namespace melflow::test::batches_test {
namespace {

struct Options {
  std::string memory = "64MiB", segment = "length: 2000, hop: 500", batches = "size: 7";
  int workers = 2;
  std::uint64_t epoch = 0, skip = 0;
  std::size_t rank = 0, ranks = 1;
  std::optional<std::uint64_t> order = std::nullopt;
  std::size_t takes = static_cast<std::size_t>(-1);  ///< batches taken; then nobody takes any
  std::string nodes = {}, from = "mel";  ///< nodes after batch, and those whose rows are taken
  bool has_two_sources = false;          ///< the files come from two nodes, in the same order
};

struct Taken {
  std::vector<std::string> samples;  ///< their origins and their bytes
  std::vector<std::size_t> sizes;
  RunReport report;
  std::vector<std::string> remarks, said;  ///< said: warnings from batches
};

// Splits a sample into its origin, "12 3 ", and the values after that.
std::pair<std::string, std::string> parts_of(const std::string& sample) {
  const std::size_t begin = sample.find(' ', sample.find(' ') + 1) + 1;
  return {sample.substr(0, begin), sample.substr(begin)};
}

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
  auto queue = std::make_shared<BatchQueue<SampleBatch>>(2);
  const auto task = set_task(plan.services, {.shuffle = o.order});
  task->delivery = std::make_shared<BatchDelivery>(
      BatchDelivery{queue, [queue](std::string text) { queue->warn(std::move(text)); }, nullptr,
                    o.epoch, o.skip, "", o.rank, o.ranks});
  const auto* source = dynamic_cast<const ManifestSource*>(plan.nodes.front().stage.get());
  Runner runner(std::move(plan));
  const Watchdog watchdog("batches");
  Taken out;
  std::vector<SampleBatch> kept;
  std::jthread consumer([&] {
    SampleBatch batch;
    while (kept.size() < o.takes) {
      const TakeResult state = queue->take(batch, 0.05);
      if (state == TakeResult::ended) return;
      if (state == TakeResult::batch) kept.push_back(std::move(batch));
    }
    queue->close();
    runner.stop();
  });
  out.report = runner.run();
  queue->end();
  consumer.join();
  for (const Remark& r : runner.remarks())
    out.remarks.push_back(fmt::format("{}: {}", r.name, r.entry.reason));
  out.said = queue->take_warnings();
  for (const SampleBatch& b : kept) {
    out.sizes.push_back(b.files.size());
    const std::size_t begin = out.samples.size();
    for (std::size_t i = 0; i < b.files.size(); ++i) {
      const std::size_t listed = source->manifest().listed(static_cast<std::size_t>(b.files[i]));
      out.samples.push_back(fmt::format("{} {} ", listed, b.offsets[i]));
    }
    for (const SampleBatch::Rows& rows : b.inputs) {
      std::size_t bytes = size_of(rows.type), row = size_of(rows.type);
      for (std::size_t i = 1; i < rows.shape.size(); ++i) bytes *= rows.shape[i];
      for (std::size_t i = 2; i < rows.shape.size(); ++i) row *= rows.shape[i];
      CHECK(rows.shape[0] == b.files.size());
      for (std::size_t i = 0; i < b.files.size(); ++i)
        out.samples[begin + i].append(
            reinterpret_cast<const char*>(rows.data.data()) + i * bytes,
            rows.lengths.empty() ? bytes : static_cast<std::size_t>(rows.lengths[i]) * row);
    }
  }
  return out;
}

// Clips of many lengths, one with many blocks, one broken in the middle, one without samples.
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
  const Filled<write_clips> folder;
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
  const Filled<write_clips> folder;
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

TEST_CASE("batches: a bucket gives batches of similar length, in any order") {
  const Filled<write_clips> folder;
  const std::string shuffled = "size: 4, shuffle: 20, seed: 3";
  using Batches = std::vector<std::vector<std::string>>;
  const auto batches_of = [](const Taken& taken) {
    Batches out;
    auto at = taken.samples.begin();
    for (const std::size_t size : taken.sizes) {
      const auto end = at + static_cast<std::ptrdiff_t>(size);
      out.emplace_back(at, end);
      at = end;
    }
    return out;
  };
  // Returns the bytes of padding, except in the batch with the longest clip, where these dominate;
  // and whether the longest clips of batches rise or fall throughout.
  const auto padding_of = [](const Batches& batches, bool& is_sorted) {
    std::size_t padding = 0;
    std::vector<std::size_t> longest;
    for (const auto& batch : batches) {
      longest.push_back(0);
      for (const std::string& s : batch) longest.back() = std::max(longest.back(), s.size());
      if (longest.back() > 100'000) continue;
      for (const std::string& s : batch) padding += longest.back() - s.size();
    }
    is_sorted = std::is_sorted(longest.begin(), longest.end()) ||
                std::is_sorted(longest.rbegin(), longest.rend());
    return padding;
  };
  const Taken plain = run(folder, {.segment = "", .batches = shuffled});
  bool is_sorted = false;
  const std::size_t most = padding_of(batches_of(plain), is_sorted) * 2 / 3;
  for (const std::string bucket : {", bucket: 12", ", bucket: 100"}) {
    CAPTURE(bucket);
    const Options options{.segment = "", .batches = shuffled + bucket, .workers = 1};
    const Taken one = run(folder, options);
    CHECK(sorted(one.samples) == sorted(plain.samples));
    CHECK(std::count(one.sizes.begin(), one.sizes.end(), 4) == 6);  // and one with the rest
    Options with = options;
    with.workers = 5;
    CHECK(run(folder, with).samples == one.samples);
    const auto begin = one.samples.begin();
    for (const std::size_t skip : {one.sizes[0], one.sizes[0] + one.sizes[1]}) {
      with.skip = skip;
      const std::vector<std::string> rest = run(folder, with).samples;
      CHECK(rest == std::vector(begin + static_cast<std::ptrdiff_t>(skip), one.samples.end()));
    }
    // Runs another epoch, and another seed.
    with = options;
    with.epoch = 1;
    Options seed = options;
    seed.batches = "size: 4, shuffle: 20, seed: 4" + bucket;
    std::vector<Batches> all{batches_of(one), batches_of(run(folder, with)),
                             batches_of(run(folder, seed))};
    for (Batches& batches : all) {
      CHECK(padding_of(batches, is_sorted) < most);
      CHECK_FALSE(is_sorted);
      for (auto& batch : batches) std::sort(batch.begin(), batch.end());
      std::sort(batches.begin(), batches.end());
    }
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) CHECK(all[i] != all[j]);
    with = options;
    with.batches += ", drop_last: true";
    CHECK(run(folder, with).sizes == std::vector<std::size_t>(6, 4));
  }
  for (const std::string option : {"bucket", "max_rows"})
    CHECK_THROWS_WITH_AS(run(folder, {.segment = "length: 2000", .batches = option + ": 8"}),
                         doctest::Contains((option + ": is for whole recordings").c_str()),
                         ConfigError);
}

TEST_CASE("batches: what shuffle holds is part of the budget, or is cut and said") {
  const Filled<write_clips> folder;
  // A window has 26 frames of 8 values, and takes 4 KiB in memory.
  const Taken small = run(folder, {.batches = "size: 7, shuffle: 1000"});
  CHECK(small.report.memory_peak >= 1000 * 4096);
  CHECK(small.report.warnings.empty());
  for (const auto& [batches, message] :
       {std::pair{"size: 7, shuffle: 20000",
                  "out.shuffle: 20000 examples take 79MiB, and the rest of this pipeline needs "},
        {"size: 7, shuffle: 20000", ", or dtype: float16, which takes half"},
        {"size: 7, dtype: float16, shuffle: 20000", "is more than memory.host (64MiB); set "}}) {
    CAPTURE(batches);
    CHECK_THROWS_WITH_AS(run(folder, {.batches = batches}), doctest::Contains(message),
                         ConfigError);
  }
  // The value in the message suffices: 1000 examples and what the rest needs.
  std::string set;
  try {
    run(folder, {.memory = "10MiB", .batches = "size: 7, shuffle: 1000"});
  } catch (const ConfigError& e) {
    const std::string said = e.what();
    const std::size_t at = said.find("set memory.host: ") + 17;
    set = said.substr(at, said.find(',', at) - at);
  }
  REQUIRE_FALSE(set.empty());
  CHECK(run(folder, {.memory = set, .batches = "size: 7, shuffle: 1000"}).samples == small.samples);
  // Two recordings of 5.6 MB; half of the budget has room for one.
  for (const char* name : {"clips/00b.wav", "clips/09b.wav"})
    write_wav(folder.file(name), 14'000'000, 8000, 97);
  const Options whole{.memory = "20MiB", .segment = "", .batches = "size: 4, shuffle: 22, seed: 3"};
  const Taken cut = run(folder, whole);
  REQUIRE(cut.report.warnings.size() == 1);
  CHECK(cut.report.warnings[0].find("batches: shuffle: ") == 0);
  CHECK(cut.report.warnings[0].find("and not 22, fill the part of memory.host that it may take "
                                    "(10MiB); raise memory.host") != std::string::npos);
  CHECK(cut.said == cut.report.warnings);
  Options with = whole;
  with.workers = 5;
  CHECK(run(folder, with).samples == cut.samples);
  Options larger = whole;
  larger.memory = "64MiB";
  const Taken all = run(folder, larger);
  CHECK(all.report.warnings.empty());
  CHECK(sorted(all.samples) == sorted(cut.samples));
  CHECK_THROWS_WITH_AS(
      run(folder, {.memory = "12MiB", .segment = "", .batches = "size: 4, shuffle: 22"}),
      doctest::Contains("out.shuffle: half of memory.host (12MiB) is for the recordings"),
      ConfigError);
}

TEST_CASE("batches: whoever keeps them does not stop the run, nor does who takes no more") {
  const Filled<write_clips> folder;
  // The rows kept for shuffling exceed the budget.
  const Taken all = run(folder, {.memory = "14MiB", .segment = "length: 2000, hop: 20"});
  CHECK(all.report.ending == Ending::complete);
  CHECK(all.samples.size() * 26 * 8 * 4 > (14U << 20));
  for (const std::size_t takes : {0U, 1U, 5U}) {
    CHECK(run(folder, {.takes = takes}).sizes.size() == takes);
  }
}

TEST_CASE("batches: rows of concat are those of its inputs, side by side") {
  const Filled<write_clips> folder;
  const std::string wide =
      "  wide: {stage: mel, from: batch, sample_rate: 8000, n_fft: 1024, hop: 80, n_mels: 8, log: "
      "db, top_db: 20}\n";
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
      const std::string values = parts_of(left[i]).second, others = parts_of(right[i]).second;
      std::string& both = expected.emplace_back(parts_of(left[i]).first);
      for (std::size_t at = 0; at < values.size(); at += kFrame)
        both += values.substr(at, kFrame) + others.substr(at, kFrame);
    }
    options.nodes = wide + "  all: {stage: concat, from: [mel, wide]}\n";
    options.from = "all";
    for (const int workers : {1, 4}) {
      options.workers = workers;
      CHECK(run(folder, options).samples == expected);
    }
  }
}

TEST_CASE("batches: of several sources they are those of one with the same files") {
  const Filled<write_clips> folder;
  for (const std::optional<std::uint64_t> order : {std::optional<std::uint64_t>(), {7}})
    for (const int workers : {1, 5}) {
      const Taken one = run(folder, {.workers = workers, .order = order});
      const Taken two = run(folder, {.workers = workers, .order = order, .has_two_sources = true});
      REQUIRE(one.samples.size() > 500);
      CHECK(two.samples == one.samples);
      CHECK(two.sizes == one.sizes);
    }
}

TEST_CASE("batches: of several inputs a batch has the rows of each, as they come by themselves") {
  const Filled<write_clips> folder;
  const std::string nodes =
      "  samples: {stage: samples, from: segment, sample_rate: 8000}\n"
      "  wide: {stage: mel, from: batch, sample_rate: 8000, n_fft: 1024, hop: 80, n_mels: 8, log: "
      "db, top_db: 20}\n";
  for (const std::string& segment : std::vector<std::string>{"length: 2000, hop: 500", ""})
    for (const std::string& batches : std::vector<std::string>{
             "size: 7, shuffle: 20, seed: 3",
             segment.empty() ? "size: 5, bucket: 9, max_rows: 1500" : "size: 5"}) {
      CAPTURE(segment);
      CAPTURE(batches);
      // By itself, each input is taken in the order of the first.
      const auto alone = [&](const std::string& from) {
        std::string others;
        for (const char* other : {"samples", "wide", "mel"})
          if (other != from)
            others += fmt::format("  d_{0}: {{stage: discard, from: {0}}}\n", other);
        Options o{.segment = segment, .batches = batches, .nodes = nodes + others, .from = from};
        o.batches = batches.substr(0, batches.find(", bucket"));
        return run(folder, o).samples;
      };
      std::vector<std::string> expected = alone("mel");
      const std::vector<std::string> samples = alone("samples"), wide = alone("wide");
      REQUIRE(samples.size() == expected.size());
      REQUIRE(wide.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        REQUIRE(parts_of(samples[i]).first == parts_of(expected[i]).first);
        expected[i] += parts_of(samples[i]).second + parts_of(wide[i]).second;
      }
      std::optional<std::vector<std::string>> first;
      for (const int workers : {1, 2, 7}) {
        CAPTURE(workers);
        const Taken all = run(folder, {.segment = segment,
                                       .batches = batches,
                                       .workers = workers,
                                       .nodes = nodes,
                                       .from = "[mel, samples, wide]"});
        CHECK(all.report.counts.ok == 25);
        CHECK(all.report.counts.failed == 1);
        for (const StageReport& stage : all.report.stages)
          if (stage.name == "decode") CHECK(stage.files_in == 27);
        CHECK(sorted(all.samples) == sorted(expected));
        if (batches.find("bucket") == batches.npos) CHECK(all.samples == expected);
        if (!first) first = all.samples;
        CHECK(all.samples == *first);
      }
    }
}

TEST_CASE("batches: a recording that one of several inputs loses gives nothing") {
  const Filled<write_clips> folder;
  // Recordings of 3000 + 900 i samples, and longer ones.
  const std::string nodes =
      "  few: {stage: segment, from: decode, max_length: 1s}\n"
      "  samples: {stage: samples, from: few, sample_rate: 8000}\n";
  for (const std::string& from : std::vector<std::string>{"[mel, samples]", "[samples, mel]"})
    for (const int workers : {1, 4}) {
      CAPTURE(from);
      const Taken some =
          run(folder, {.segment = "", .workers = workers, .nodes = nodes, .from = from});
      CHECK(some.samples.size() == 6);
      CHECK(some.report.counts.ok == 6);
      CHECK(some.report.ending == Ending::complete);
    }
}

TEST_CASE("batches: a recording of which inputs give other numbers of windows fails") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 8000, 8000, 1);
  write_wav(folder.file("clips/b.wav"), 8500, 8000, 2);
  const Taken one =
      run(folder, {.segment = "length: 2000, hop: 2000",
                   .nodes = "  padded: {stage: segment, from: decode, length: 2000, hop: 2000, "
                            "tail: pad}\n  samples: {stage: samples, from: padded, sample_rate: "
                            "8000}\n",
                   .from = "[mel, samples]"});
  CHECK(one.samples.size() == 4);
  REQUIRE(one.remarks.size() == 1);
  CHECK(one.remarks[0] == "b.wav: its windows do not fit together: mel gives 4, samples gives 5");
}

TEST_CASE("batches: inputs that do not fit together are refused before the run") {
  const Filled<write_clips> folder;
  struct Row {
    const char *segment, *nodes, *from, *batches, *message;
  };
  constexpr const char* kSamples = "  s: {stage: samples, from: segment, sample_rate: 8000}\n";
  const Row rows[] = {
      {"",
       "  cut: {stage: segment, from: decode, length: 2000}\n"
       "  s: {stage: samples, from: cut, sample_rate: 8000}\n",
       "[mel, s]", "size: 7",
       "out.from: a sample of mel is a whole recording, one of s is a window; put both after the "
       "same segment"},
      {"length: 2000",
       "  cut: {stage: segment, from: decode, length: 2000, hop: 500}\n"
       "  s: {stage: samples, from: cut, sample_rate: 8000}\n",
       "[mel, s]", "size: 7",
       "out.from: a sample of mel is a window of 0.25 s every 0.25 s, one of s is 0.25 s every "
       "0.0625 s; give them the same windows"},
      {"", kSamples, "[mel, s]", "names: [a]", "out.names: 1 names for 2 inputs; give each a name"},
      {"", kSamples, "[mel, s]", "names: [a, path]",
       "out.names: a batch has another entry 'path'; choose another name"},
      {"", kSamples, "[mel, s]", "names: [a, a_length]",
       "out.names: two entries of a batch would be called 'a_length'; give each a name of its own"},
      {"", kSamples, "[mel, s]", "names: [a, 2b]",
       "out.names: '2b' is no name; a name has letters, digits and _, and begins with no digit"},
      {"", kSamples, "[mel, mel]", "size: 7",
       "out.from: batches names mel twice; name two different nodes"},
      {"", kSamples, "[mel, s]", "dtype: int16", "out.dtype: int16 holds samples"},
      {"",
       "  decode2: {stage: decode, from: read}\n  seg2: {stage: segment, from: decode2}\n"
       "  s: {stage: samples, from: seg2, sample_rate: 8000}\n",
       "[mel, s]", "size: 7",
       "out.from: batches takes the same blocks by all of its inputs, but only some of its inputs "
       "come by "
       "decode (decode), which cuts files into blocks; let all of them come by the same decode"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    CHECK_THROWS_WITH_AS(
        run(folder,
            {.segment = row.segment, .batches = row.batches, .nodes = row.nodes, .from = row.from}),
        doctest::Contains(row.message), ConfigError);
  }
}

namespace {

// The stage alone, and files of one row each that come to it from one thread.
class Alone {
 public:
  explicit Alone(std::size_t files) {
    plan_ = load_plan_text(
        "version: 1\ngraph:\n"
        "  files: {stage: file_list, root: clips}\n"
        "  read: {stage: disk_read, from: files}\n"
        "  decode: {stage: decode, from: read}\n"
        "  segment: {stage: segment, from: decode}\n"
        "  batch: {stage: batch, from: segment}\n"
        "  mel: {stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 8}\n"
        "  out: {stage: batches, from: mel, size: 1}\n",
        "test.yaml", {});
    nodes_ = plan_.nodes.size();
    runner_.emplace(std::move(plan_.nodes.back()));
    set_task(runner_->run().services,
             {.delivery = std::make_shared<BatchDelivery>(BatchDelivery{.queue = queue_})});
    runner_->ledger().open(files, std::vector<std::string>(nodes_));
    runner_->stage().start(runner_->run());
    reach_.emplace(Reach::plain(1, nodes_));
  }

  /// Returns the size of the memory that holds its row.
  std::size_t put(std::size_t file, std::shared_ptr<const Reservation> reservation = nullptr) {
    auto rows = std::make_shared<MelBatch>();
    rows->info = dynamic_cast<BatchSource&>(runner_->stage()).inputs().front().rows;
    auto part = std::make_shared<MelPart>();
    part->data = std::make_shared<const Buffer>(pool_.lease(8 * sizeof(float)));
    std::fill_n(part->data->as<float>(), 8, static_cast<float>(file));
    part->row_count = 1;
    const std::size_t bytes = part->data->capacity();
    rows->parts.push_back(std::move(part));
    const auto stream =
        std::make_shared<Stream>(runner_->ledger(), Stream::Records{file}, 0, *reach_);
    Item item;
    item.origins = std::make_shared<const Origins>(Origins{{std::move(reservation), stream}});
    item.payload = std::move(rows);
    std::unique_ptr<StageState> cursor;
    ItemContext context(runner_->run(), item, node());
    CHECK(runner_->items().run(item, cursor, context));
    stream->sink_done(node());
    return bytes;
  }
  void take(std::int64_t file) {
    SampleBatch batch;
    REQUIRE(queue_->take(batch, 100) == TakeResult::batch);
    CHECK(batch.files == std::vector<std::int64_t>{file});
  }
  void end() { dynamic_cast<HoldsItems&>(runner_->stage()).drop_waiting(); }
  [[nodiscard]] Ledger& ledger() { return runner_->ledger(); }
  [[nodiscard]] std::size_t waiting() const { return queue_->waiting(); }

 private:
  [[nodiscard]] int node() const { return static_cast<int>(nodes_) - 1; }

  Plan plan_;
  std::size_t nodes_ = 0;
  BufferPool pool_{1 << 20};
  const std::shared_ptr<BatchQueue<SampleBatch>> queue_ =
      std::make_shared<BatchQueue<SampleBatch>>(1);
  std::optional<Reach> reach_;
  std::optional<StageRunner> runner_;
};

}  // namespace

TEST_CASE("batches: a recording that fails does not make a worker wait for the program") {
  const Watchdog watchdog("batches: a failure");
  Alone batches(4);
  for (std::size_t file = 1; file < 4; ++file) batches.put(file);
  CHECK(batches.waiting() == 0);
  // Now there are three batches, of which one can wait for the program, which is this thread.
  batches.ledger().close(0, Outcome::failed, 2, "bad");
  for (std::int64_t file = 1; file < 4; ++file) batches.take(file);
  batches.end();
  CHECK(batches.ledger().counts().ok == 3);
}

TEST_CASE("batches: rows that wait for those of an earlier recording are charged as rows") {
  const Watchdog watchdog("batches: memory");
  MemoryBudget budget(1 << 20, 0);
  Alone batches(2);
  const std::size_t bytes = batches.put(1, Reservation::try_make(budget, 1 << 19, Claim::later));
  CHECK(bytes > 0);
  CHECK(budget.used() == bytes);
  batches.ledger().close(0, Outcome::failed, 2, "bad");
  batches.take(1);
  batches.end();
  CHECK(budget.used() == 0);
}

}  // namespace melflow::test::batches_test
