// The stage around the kernel: which frames and windows, in blocks and batches. The kernel's tests
// check the values of a frame.
#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "pipeline/stage/reach.h"
#include "stages/facts.h"
#include "stages/features/mel/mel_kernel.h"
#include "stages/features/mel/utterance_steps.h"
#include "tests/stage/bench.h"
#include "tests/support/audio_files.h"
#include "tests/support/printing.h"

namespace melflow::test::mel_test {
namespace {

struct Rows {
  std::vector<float> values;  ///< ordered by the positions in the parts
  std::int64_t count = 0;
  std::vector<std::string> reasons;  ///< of failed parts
};

std::shared_ptr<const FeatureInfo> planned(Bench& mel, const Properties& given) {
  const Planned p = mel.plan(given);
  REQUIRE(p.errors.empty());
  return p.properties.get_or(property::kFeatures, nullptr);
}

// Sends parts through the stage in batches of `files`, each as a separate stream.
std::vector<std::shared_ptr<const MelPart>> parts_of(
    Bench& bench, const std::vector<std::shared_ptr<const Windows>>& windows, std::size_t files,
    std::vector<std::string>* reasons = nullptr) {
  std::vector<std::shared_ptr<const MelPart>> out;
  for (std::size_t at = 0; at < windows.size(); at += files) {
    auto batch = std::make_shared<Batch>();
    const std::size_t n = std::min(files, windows.size() - at);
    const Reach reach = Reach::plain(0, 1);
    Ledger ledger;
    ledger.open(n, {"mel"});
    {
      Origins origins;
      for (std::size_t i = 0; i < n; ++i) {
        batch->parts.push_back(windows[at + i]);
        origins.push_back(
            {nullptr, std::make_shared<Stream>(ledger, Stream::Records{i}, 0, reach), true, true});
      }
      Item item;
      item.origins = std::make_shared<const Origins>(std::move(origins));
      item.payload = batch;
      std::unique_ptr<StageState> cursor;
      ItemContext context(bench.run(), item, 0);
      auto result = bench.items().run(item, cursor, context);
      REQUIRE(result.ok());
      const auto mel = std::static_pointer_cast<const MelBatch>(result->payload);
      REQUIRE(mel->parts.size() == n);
      out.insert(out.end(), mel->parts.begin(), mel->parts.end());
    }
    for (std::size_t i = 0; i < n && reasons != nullptr; ++i)
      reasons->push_back(ledger.entry(i).reason);
  }
  return out;
}

Rows placed(const std::vector<std::shared_ptr<const MelPart>>& parts, std::size_t values_per_row) {
  Rows rows;
  for (const auto& p : parts) rows.count = std::max(rows.count, p->first_row + p->row_count);
  rows.values.assign(static_cast<std::size_t>(rows.count) * values_per_row, -12345.0F);
  for (const auto& p : parts)
    std::memcpy(rows.values.data() + static_cast<std::size_t>(p->first_row) * values_per_row,
                p->values(),
                static_cast<std::size_t>(p->row_count) * values_per_row * sizeof(float));
  return rows;
}

std::vector<std::shared_ptr<const Windows>> cut(const std::string& options,
                                                const std::vector<std::int16_t>& samples,
                                                std::int64_t block,
                                                Properties* properties = nullptr,
                                                const Requirements& required = {}) {
  Bench segment("segment", options);
  Properties given;
  given.set(property::kSampleRate, 8000);
  const Planned p = segment.plan(given, required);
  REQUIRE(p.errors.empty());
  if (properties != nullptr) *properties = p.properties;
  const auto got = segment.stream<Windows>(waveform(samples, 8000, block));
  REQUIRE_MESSAGE(got.ok(), got.entry.reason);
  return got.blocks;
}

std::vector<std::int16_t> signal(std::int64_t n) {
  std::vector<std::int16_t> out;
  for (const float v : test_signal(n)) out.push_back(static_cast<std::int16_t>(v * 32767));
  return out;
}

MelOptions mel_options() {
  MelOptions o;
  o.sample_rate = 8000;
  o.n_fft = 64;
  o.hop = 32;
  o.center = false;
  o.n_mels = 10;
  o.log = MelOptions::Log::db;
  return o;
}
const std::string kMel =
    "{sample_rate: 8000, n_fft: 64, hop: 32, center: false, n_mels: 10, log: db";

}  // namespace

TEST_CASE(
    "mel: every window is a unit of its own, whatever overlaps it, with silence behind the end") {
  struct Row {
    const char* options;
    std::int64_t samples;
  };
  const Row rows[] = {
      {"{length: 64}", 1000},
      {"{length: 200, hop: 50}", 1000},
      {"{length: 200, hop: 50, tail: pad}", 1010},
      {"{length: 100, hop: 300, tail: pad}", 1010},
      {"{long: {length: 256, hop: 128}, short: {length: 128, hop: 64}}", 4096},
      {"{long: {length: 256, hop: 128}, short: {length: 128, hop: 64}, tail: pad}", 4000},
      // Most short windows of the last long one begin after the end.
      {"{long: {length: 1000, hop: 1000}, short: {length: 64, hop: 32}, tail: pad}", 2001},
      {"{long: {length: 1000, hop: 900}, short: {length: 70, hop: 7}, tail: pad}", 1905},
  };
  const MelKernel kernel(std::make_shared<MelPlan>(mel_options()));
  auto scratch = kernel.make_scratch();
  for (const Row& row : rows) {
    for (const std::int64_t block : {0, 77, 500}) {
      CAPTURE(std::string(row.options));
      CAPTURE(block);
      const auto samples = signal(row.samples);
      Properties properties;
      const auto windows = cut(row.options, samples, block, &properties);
      Bench mel("mel", kMel + "}");
      const auto info = planned(mel, properties);
      const Rows got = placed(parts_of(mel, windows, 3), info->values_per_row());
      // One by one, each from a copy followed by silence.
      const WindowGrid grid = *windows[0]->grid;
      CHECK(info->frames == kernel.plan().frames(grid.length));
      std::int64_t count = 0;
      for (const auto& w : windows) count += w->row_count;
      REQUIRE(got.count == count);
      std::vector<float> expected(info->values_per_row());
      int different = 0;
      for (std::int64_t r = 0; r < count; ++r) {
        std::vector<std::int16_t> window(static_cast<std::size_t>(grid.length), 0);
        const std::int64_t at = grid.start(r);
        for (std::int64_t i = 0; i < grid.length && at + i < row.samples; ++i)
          window[static_cast<std::size_t>(i)] = samples[static_cast<std::size_t>(at + i)];
        kernel.frames(SignalView<std::int16_t>{window.data(), 0, grid.length, grid.length}, 0,
                      info->frames, expected.data(), scratch);
        if (std::memcmp(expected.data(),
                        got.values.data() + static_cast<std::size_t>(r) * expected.size(),
                        expected.size() * sizeof(float)) != 0)
          ++different;
      }
      CHECK(different == 0);
    }
  }
}

TEST_CASE("mel: recordings in blocks have the frames of the whole, bit for bit") {
  const auto samples = signal(5000);
  std::mt19937 random(5);
  for (const char* more : {"", ", center: true", ", center: true, pad_mode: constant", ", hop: 100",
                           ", n_fft: 65, center: true", ", win_length: 20"}) {
    std::string options = kMel + more + "}";
    if (std::string(more).find("center") != std::string::npos)
      options.replace(options.find("center: false, "), 15, "");
    if (std::string(more).find("hop") != std::string::npos)
      options.replace(options.find("hop: 32, "), 9, "");
    if (std::string(more).find("n_fft") != std::string::npos)
      options.replace(options.find("n_fft: 64, "), 11, "");
    CAPTURE(options);
    Bench mel("mel", options);
    const Requirements required = mel.stage().require({});
    REQUIRE(required.get(requirement::kContext));
    CHECK(required.get(requirement::kSampleRate) == 8000);
    const auto info = planned(mel, {});
    CHECK(info->frames == 0);
    const Rows whole =
        placed(parts_of(mel, cut("{}", samples, 0, nullptr, required), 1), info->values_per_row());
    CHECK(whole.count > 40);
    for (const std::int64_t block : {1, 31, 64, 100, 999, 4999}) {
      CAPTURE(block);
      auto windows = cut("{}", samples, block, nullptr, required);
      // Parts contain their positions, so any order will do.
      std::shuffle(windows.begin(), windows.end(), random);
      const auto parts = parts_of(mel, windows, 4);
      const Rows got = placed(parts, info->values_per_row());
      CHECK(got.values == whole.values);
      std::int64_t sum = 0;
      for (const auto& p : parts) sum += p->row_count;
      CHECK(sum == whole.count);
      for (std::size_t i = 0; i < parts.size(); ++i) CHECK(parts[i]->last == windows[i]->last);
    }
  }
}

TEST_CASE("mel: what needs the maximum is done with the window or the whole recording, else left") {
  const auto samples = signal(3000);
  for (const char* finish : {", top_db: 20", ", ref: max", ", ref: max, top_db: 20"}) {
    CAPTURE(std::string(finish));
    Bench plain("mel", kMel + "}"), finished("mel", kMel + finish + "}");
    MelOptions options = mel_options();
    if (std::string(finish).find("top_db") != std::string::npos) options.top_db = 20;
    options.ref.is_max = std::string(finish).find("max") != std::string::npos;
    const UtteranceSteps finish_all = UtteranceSteps::of_mel(options);
    const std::size_t bands = planned(plain, {})->values_per_row();
    planned(finished, {});
    const auto whole = cut("{}", samples, 0);
    Rows expected = placed(parts_of(plain, whole, 1), bands);
    const auto done = parts_of(finished, whole, 1);
    CHECK_FALSE(done.at(0)->pending);
    finish_all.apply(expected.values.data(), expected.count, static_cast<int>(bands));
    CHECK(placed(done, bands).values == expected.values);
    // Blocks are not finished yet, and each lists the remaining steps.
    const auto blocks = cut("{}", samples, 700, nullptr, finished.stage().require({}));
    const auto parts = parts_of(finished, blocks, 2);
    REQUIRE(parts.size() == 5);
    for (const auto& p : parts) {
      REQUIRE(p->pending);
      CHECK(p->pending_columns == static_cast<int>(bands));
    }
    Rows left = placed(parts, bands);
    parts[0]->pending->apply(left.values.data(), left.count, static_cast<int>(bands));
    CHECK(left.values == expected.values);
    // Windows are finished by themselves.
    Properties properties;
    const auto windows = cut("{length: 320}", samples, 0, &properties);
    Bench each("mel", kMel + finish + "}"), each_plain("mel", kMel + "}");
    const std::size_t values = planned(each, properties)->values_per_row();
    planned(each_plain, properties);
    Rows by_window = placed(parts_of(each_plain, windows, 1), values);
    for (std::int64_t r = 0; r < by_window.count; ++r) {
      finish_all.apply(by_window.values.data() + static_cast<std::size_t>(r) * values,
                       static_cast<std::int64_t>(values / bands), static_cast<int>(bands));
    }
    CHECK(placed(parts_of(each, windows, 1), values).values == by_window.values);
  }
}

TEST_CASE("mel: a part that cannot be done is named, and the others of its batch are done") {
  const auto good = cut("{}", signal(1000), 0), tiny = cut("{}", signal(63), 0);
  auto other_rate = std::make_shared<Windows>(*good[0]);
  other_rate->sample_rate = 16000;
  Bench mel("mel", kMel + "}");
  planned(mel, {});
  std::vector<std::string> reasons;
  const auto parts = parts_of(mel, {good[0], tiny[0], other_rate, good[0]}, 4, &reasons);
  CHECK(reasons == std::vector<std::string>{
                       "", "shorter than one frame: 63 samples of 64",
                       "is sampled at 16000 Hz, mel.sample_rate is 8000; put a resample stage "
                       "before, set mel.sample_rate to 16000 if all are so, or leave such files "
                       "out",
                       ""});
  CHECK(parts[1] == nullptr);
  CHECK(parts[2] == nullptr);
  REQUIRE(parts[3] != nullptr);
  CHECK(placed({parts[0]}, 10).values == placed({parts[3]}, 10).values);
}

TEST_CASE("mel: rows of a block take no more than was charged for them") {
  struct Row {
    const char* segment;
    const char* mel;
  };
  const Row rows[] = {
      {"{}", ""},
      {"{}", ", hop: 1"},
      {"{length: 64, hop: 1}", ""},
      {"{length: 64, tail: pad}", ""},
      {"{long: {length: 256, hop: 128}, short: {length: 128, hop: 64}, tail: pad}", ""},
      {"{long: {length: 512, hop: 8}, short: {length: 64, hop: 8}}", ""}};
  for (const Row& row : rows) {
    for (const std::int64_t block : {100, 1000, 20'000}) {
      CAPTURE(std::string(row.segment));
      CAPTURE(std::string(row.mel));
      CAPTURE(block);
      std::string options = kMel + row.mel + "}";
      if (*row.mel != '\0') options.replace(options.find("hop: 32, "), 9, "");
      Bench mel("mel", options);
      Properties properties;
      const auto windows =
          cut(row.segment, signal(30'000), block, &properties, mel.stage().require({}));
      planned(mel, properties);
      Bench segment("segment", row.segment);
      Properties given;
      given.set(property::kSampleRate, 8000);
      segment.plan(given, mel.stage().require({}));
      const std::size_t input =
          segment.stage().output_bound({}, 2 * static_cast<std::size_t>(block));
      const std::size_t bound = mel.stage().output_bound({}, input);
      for (const auto& p : parts_of(mel, windows, 1)) CHECK(p->data->capacity() <= bound);
    }
  }
}

TEST_CASE("mel: a plan that makes no sense is refused, each with its key") {
  struct Row {
    std::string options;
    double rate;
    std::int64_t window;
    std::vector<std::string> errors;
  };
  const Row rows[] = {
      {"{}",
       0,
       0,
       {": 'sample_rate' is missing; write the rate of the recordings, or put a resample stage "
        "before this node"}},
      {"{}", 16000, 0, {}},
      {"{sample_rate: 8000}",
       16000,
       0,
       {"sample_rate: 8000 Hz, but the input has 16000 Hz; resample it to 8000 Hz, or change "
        "this"}},
      {"{sample_rate: 8000, n_fft: 512, center: false}",
       0,
       511,
       {"n_fft: a window of 511 samples is shorter than one frame of 512"}},
      {"{sample_rate: 8000, n_fft: 512, center: false}", 0, 512, {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.options);
    Properties given;
    if (row.rate > 0) given.set(property::kSampleRate, row.rate);
    if (row.window > 0) given.set(property::kWindow, row.window);
    CHECK(Bench("mel", row.options).plan(given).errors == row.errors);
  }
  // Problems that the mel plan itself finds are reported with their key.
  CHECK(Bench("mel", "{sample_rate: 8000, fmin: 5000, win_length: 900}").plan().errors.size() >= 2);
  const Planned narrow = Bench("mel", "{sample_rate: 8000, n_fft: 64, n_mels: 128}").plan();
  CHECK(narrow.errors.empty());
  REQUIRE(narrow.warnings.size() == 1);
  CHECK(narrow.warnings[0].starts_with("n_mels: "));
  CHECK(Bench("mel", "{sample_rate: 8000, win_length: 400, hop: 400}").plan().warnings.empty());
  const Planned gaps = Bench("mel", "{sample_rate: 8000, win_length: 400, hop: 401}").plan();
  REQUIRE(gaps.warnings.size() == 1);
  CHECK(gaps.warnings[0] ==
        "hop: 401 samples are more than the window's 400: the samples between two windows are in "
        "no row");
}

TEST_CASE("mel: decibels with preset librosa and without top_db are told, as power_to_db has one") {
  const auto warnings = [](const std::string& more) {
    return Bench("mel", "{preset: librosa, backend: cpu" + more + "}").plan().warnings;
  };
  CHECK(warnings("").empty());
  CHECK(warnings(", log: db, top_db: 80").empty());
  CHECK(warnings(", log: ln").empty());
  REQUIRE(warnings(", log: db").size() == 1);
  CHECK(
      warnings(", log: db")[0].starts_with("top_db: is not set: as power_to_db(..., top_db=None)"));
  for (const std::string& text :
       Bench("mel", "{preset: torchaudio, backend: cpu, log: db}").plan().warnings)
    CHECK_FALSE(text.starts_with("top_db"));
}

}  // namespace melflow::test::mel_test
