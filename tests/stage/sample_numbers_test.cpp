// fit_samples and normalize_samples: against plain formulas written from the definitions of the
// libraries whose front ends need them, in blocks of any size, and whole jobs with them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "pipeline/run/stage_runner.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/waveform_blocks.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/problems.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::sample_numbers_test {
namespace {

constexpr int kRate = 8000;
using Shorts = std::vector<std::int16_t>;

struct Fit {
  std::int64_t length = 0, multiple = 1, extra = 0, left = 0, right = 0;
  bool drop = false;
  std::string mode = "constant";

  [[nodiscard]] OptionList options() const {
    OptionList out{{"pad_left", left}, {"pad_right", right}, {"pad_mode", mode}};
    if (length > 0) {
      out.emplace_back("length", length);
    } else {
      out.emplace_back("multiple", multiple);
      out.emplace_back("extra", extra);
      out.emplace_back("rest", drop ? "drop" : "fill");
    }
    return out;
  }
};

// numpy.pad(x, (left, right), mode="reflect"): mirrored at one end and the other, over and over.
template <class T>
std::vector<T> reflected(const std::vector<T>& x, std::int64_t left, std::int64_t right) {
  std::vector<T> out;
  const auto n = static_cast<std::int64_t>(x.size());
  for (std::int64_t i = -left; i < n + right; ++i) {
    std::int64_t at = n == 1 ? 0 : i;
    while (at < 0 || at >= n) at = at < 0 ? -at : 2 * (n - 1) - at;
    out.push_back(x[static_cast<std::size_t>(at)]);
  }
  return out;
}

// As the libraries write it: cut or tile, then pad.
template <class T>
std::vector<T> fitted(std::vector<T> x, const Fit& o) {
  const auto size = [&] { return static_cast<std::int64_t>(x.size()); };
  std::int64_t behind = 0;
  if (o.length > 0) {
    const std::vector<T> once = x;
    if (o.mode == "repeat")  // np.tile(x, length // len(x) + 1)[:length]
      while (size() < o.length) x.insert(x.end(), once.begin(), once.end());
    if (o.mode == "repeat_whole")  // np.tile(x, length // len(x))
      while (size() + static_cast<std::int64_t>(once.size()) <= o.length)
        x.insert(x.end(), once.begin(), once.end());
    if (size() > o.length) x.resize(static_cast<std::size_t>(o.length));
    behind = o.length - size();
  } else {
    std::int64_t whole = size() + o.extra;
    while (whole % o.multiple != 0) o.drop ? --whole : ++whole;
    if (size() > whole) x.resize(static_cast<std::size_t>(whole));
    behind = whole - size();
  }
  if (x.empty()) return {};
  if (o.mode == "reflect") return reflected(x, o.left, behind + o.right);
  x.insert(x.begin(), static_cast<std::size_t>(o.left), T{});
  x.insert(x.end(), static_cast<std::size_t>(behind + o.right), T{});
  return x;
}

template <class T>
std::vector<T> noise(std::int64_t count, std::mt19937& random) {
  std::vector<T> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto draw = static_cast<std::int16_t>(random());
    out.push_back(sizeof(T) == 2 ? static_cast<T>(draw)
                                 : static_cast<T>(static_cast<float>(draw) / 32768.0F));
  }
  return out;
}

// The same recording in one block, in blocks of a sample, and of two other sizes.
std::vector<std::int64_t> blocks(std::int64_t count, std::mt19937& random) {
  return {0, 1, 2 + static_cast<std::int64_t>(random() % 7),
          1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count + 4))};
}

// A stage that takes and gives samples.
class SampleStage {
 public:
  SampleStage(const std::string& stage, const OptionList& options) : runner_(stage, options) {
    Properties given;
    given.set(property::kSampleRate, kRate);
    plan = runner_.plan(given);
  }
  template <class T>
  Streamed<Waveform> run(const std::vector<T>& samples, std::int64_t block) {
    const auto in = waveform(samples, kRate, block);
    std::size_t longest = 0;
    for (const auto& b : in) longest = std::max(longest, b->bytes());
    auto out = runner_.stream<Waveform>(in);
    for (const auto& b : out.blocks) CHECK(b->bytes() <= runner_.stage().output_bound({}, longest));
    return out;
  }
  [[nodiscard]] std::optional<RecordingLength> length_of(std::int64_t samples) {
    return dynamic_cast<const TellsLength&>(runner_.stage()).length_of({kRate, samples});
  }
  Planned plan;

 private:
  StageRunner runner_;
};

template <class T>
void check_fit(const Fit& o, std::int64_t count, std::mt19937& random) {
  const std::vector<T> in = noise<T>(count, random), expected = fitted(in, o);
  SampleStage stage("fit_samples", o.options());
  REQUIRE(stage.plan.errors.empty());
  const auto length = stage.length_of(count);
  for (const std::int64_t block : blocks(count, random)) {
    CAPTURE(block);
    const auto out = stage.run(in, block);
    REQUIRE(out.ok() == !expected.empty());
    REQUIRE(length.has_value() == !expected.empty());
    if (expected.empty()) continue;
    CHECK(joined<T>(out.blocks) == expected);
    CHECK(length->samples == static_cast<std::int64_t>(expected.size()));
  }
}

std::string text(const Fit& o) {
  return fmt::format("length {} multiple {} extra {} left {} right {} {} {}", o.length, o.multiple,
                     o.extra, o.left, o.right, o.drop ? "drop" : "fill", o.mode);
}

struct Norm {
  std::string by = "deviation";
  double level = 0, eps = 1e-7;
  bool limit = false;

  [[nodiscard]] OptionList options() const {
    OptionList out{{"by", by}, {"eps", eps}, {"limit", limit}};
    if (by != "deviation") out.emplace_back("level", fmt::format("{}dB", level));
    return out;
  }
};

// In double, in two passes. `from`, `count`: of the part that counts; what follows becomes 0.
std::vector<double> normalized(const std::vector<double>& x, const Norm& o) {
  const auto n = static_cast<double>(x.size());
  double mean = 0, variance = 0, square = 0, peak = 0;
  for (const double v : x) {
    mean += v / n;
    square += v * v / n;
    peak = std::max(peak, std::abs(v));
  }
  for (const double v : x) variance += (v - mean) * (v - mean) / n;
  const double level = std::pow(10.0, o.level / 20);
  std::vector<double> out = x;
  for (double& v : out)
    if (o.by == "deviation")
      v = variance + o.eps == 0 ? 0 : (v - mean) / std::sqrt(variance + o.eps);
    else if (o.by == "rms")
      v = v == 0 ? 0 : v * level / (std::sqrt(square) + o.eps);
    else
      v = v == 0 ? 0 : v * level / (peak + o.eps);
  double high = 0;
  for (const double v : out) high = std::max(high, std::abs(v));
  if (o.limit && high > 1)
    for (double& v : out) v /= high + o.eps;
  return out;
}

template <class T>
std::vector<double> doubles(const std::vector<T>& in) {
  std::vector<double> out;
  for (const T v : in) out.push_back(sizeof(T) == 2 ? v / 32768.0 : static_cast<double>(v));
  return out;
}

double worst(const std::vector<float>& is, const std::vector<double>& expected) {
  REQUIRE(is.size() == expected.size());
  double out = 0;
  for (std::size_t i = 0; i < is.size(); ++i)
    out = std::max(out, std::abs(is[i] - expected[i]) / (1e-3 + std::abs(expected[i])));
  return out;
}

Norm some_norm(int i, std::mt19937& random) {
  Norm o;
  o.by = std::vector{"deviation", "rms", "peak"}[static_cast<std::size_t>(i % 3)];
  o.level = -static_cast<double>(random() % 40);
  o.eps = std::vector{1e-7, 1e-5, 1e-6, 0.0}[random() % 4];
  o.limit = o.by == "rms" && random() % 2 == 0;
  return o;
}

// Quiet or loud, with an offset of the mean now and then.
template <class T>
std::vector<T> sound(std::int64_t count, std::mt19937& random) {
  std::vector<T> out = noise<T>(count, random);
  const double gain = std::pow(10.0, -static_cast<double>(random() % 4)),
               offset = random() % 2 == 0 ? 0.0 : (sizeof(T) == 2 ? 8000.0 : 0.25);
  for (T& v : out) v = static_cast<T>(static_cast<double>(v) * gain / 2 + offset);
  return out;
}

template <class T>
void check_norm(const Norm& o, std::int64_t count, std::mt19937& random) {
  const std::vector<T> in = sound<T>(count, random);
  const std::vector<double> expected = normalized(doubles(in), o);
  SampleStage stage("normalize_samples", o.options());
  REQUIRE(stage.plan.errors.empty());
  std::vector<float> first;
  for (const std::int64_t block : blocks(count, random)) {
    CAPTURE(block);
    const auto out = stage.run(in, block);
    REQUIRE(out.ok());
    const auto values = joined<float>(out.blocks);
    if (block == 0) {
      first = values;
      CHECK(worst(values, expected) < 2e-7);
    }
    CHECK(values == first);
  }
}

std::string graph(const std::string& nodes, const std::string& last, const std::string& decode = "",
                  const std::string& files = "") {
  return "version: 1\nworkers: 2\nmemory: {host: 64MiB}\ngraph:\n"
         "  files: {stage: file_list, root: \"${DATA}\", labels: none" +
         files +
         "}\n"
         "  read: {stage: disk_read, from: files}\n"
         "  decode: {stage: decode, from: read" +
         decode + "}\n" + nodes + last +
         "  write: {stage: hdf5_write, from: last, path: \"${OUT}\"}\n";
}

constexpr const char* kSamples = "  last: {stage: samples, from: cut, sample_rate: 8000}\n";
constexpr const char* kWhole = "  cut: {stage: segment, from: fit}\n";

Output output(const TempFolder& folder, const std::string& yaml) {
  static int n = 0;
  const std::string path = folder / fmt::format("{}.h5", ++n);
  (void)completed(run_job(yaml, in_out(folder / "clips", path)));
  return read_output(path);
}

void write_clips(const TempFolder& folder) {
  for (const int samples : {1, 100, 4799, 4800, 4801})
    write_wav(folder.file(fmt::format("clips/{:05}.wav", samples)), samples, kRate,
              static_cast<unsigned>(samples));
  write_wav(folder.file("clips/99999.wav"), 150000, kRate, 9);
}

Shorts clip(const TempFolder& folder, const std::string& name) {
  return read_audio(folder / ("clips/" + name)).int16;
}

std::vector<float> floats(const Shorts& in) {
  std::vector<float> out;
  for (const std::int16_t v : in) out.push_back(static_cast<float>(v) / 32768.0F);
  return out;
}

}  // namespace

TEST_CASE(
    "fit_samples: lengths, multiples and padding are those of plain formulas, in any blocks") {
  std::mt19937 random(31);
  const auto up_to = [&](int most) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(most + 1));
  };
  const char* modes[] = {"constant", "reflect", "repeat", "repeat_whole"};
  for (int i = 0; i < 1200; ++i) {
    Fit o;
    o.mode = modes[i % 4];
    if (i % 4 >= 2 || i % 3 == 0)
      o.length = 1 + up_to(50);
    else
      o.multiple = 1 + up_to(9), o.extra = up_to(2) * up_to(3), o.drop = up_to(2) == 0;
    if (up_to(1) == 0) o.left = up_to(i % 5 == 0 ? 40 : 5);
    if (up_to(1) == 0) o.right = up_to(i % 5 == 0 ? 40 : 5);
    if (o.length == 0 && o.multiple == 1 && o.extra + o.left + o.right == 0) o.right = 1;
    const std::int64_t count = 1 + up_to(i % 2 == 0 ? 6 : 70);
    CAPTURE(i);
    CAPTURE(count);
    CAPTURE(text(o));
    if (i % 8 < 4)
      check_fit<std::int16_t>(o, count, random);
    else
      check_fit<float>(o, count, random);
  }
}

TEST_CASE("fit_samples: what CLAP, PE Audio, NeuCodec, Gemma 4 and Kyutai do to 1 to 5") {
  const auto made = [](const Fit& o, const Shorts& in = {1, 2, 3, 4, 5}) {
    SampleStage stage("fit_samples", o.options());
    return joined<std::int16_t>(stage.run(in, 2).blocks);
  };
  CHECK(made({.length = 12, .mode = "repeat_whole"}) == Shorts{1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 0, 0});
  CHECK(made({.length = 12, .mode = "repeat"}) == Shorts{1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2});
  CHECK(made({.length = 3, .mode = "repeat"}) == Shorts{1, 2, 3});
  CHECK(made({.multiple = 8, .mode = "reflect"}) == Shorts{1, 2, 3, 4, 5, 4, 3, 2});
  CHECK(made({.multiple = 5, .mode = "reflect"}) == Shorts{1, 2, 3, 4, 5});
  CHECK(made({.multiple = 5, .extra = 1}) == Shorts{1, 2, 3, 4, 5, 0, 0, 0, 0, 0});
  CHECK(made({.multiple = 6, .left = 2}) == Shorts{0, 0, 1, 2, 3, 4, 5, 0});
  CHECK(made({.left = 2, .right = 3}) == Shorts{0, 0, 1, 2, 3, 4, 5, 0, 0, 0});
  CHECK(made({.multiple = 2, .drop = true}) == Shorts{1, 2, 3, 4});
}

TEST_CASE("normalize_samples: mean and deviation, level and peak, in any blocks") {
  std::mt19937 random(37);
  for (int i = 0; i < 900; ++i) {
    const Norm o = some_norm(i, random);
    const auto count = static_cast<std::int64_t>(1 + random() % (i % 4 == 0 ? 3 : 700));
    CAPTURE(i);
    CAPTURE(count);
    CAPTURE(fmt::format("{} {} {} {}", o.by, o.level, o.eps, o.limit));
    if (i % 2 == 0)
      check_norm<std::int16_t>(o, count, random);
    else
      check_norm<float>(o, count, random);
  }
}

TEST_CASE("normalize_samples: silence and offsets stay finite, whatever is added to the divisor") {
  for (const std::int16_t value : std::vector<std::int16_t>{0, 7, 32767})
    for (const std::string by : {"deviation", "rms", "peak"})
      for (const double eps : {0.0, 1e-7}) {
        const Norm o{.by = by, .level = -10, .eps = eps};
        SampleStage stage("normalize_samples", o.options());
        const Shorts in(99, value);
        const auto out = joined<float>(stage.run(in, 40).blocks);
        CAPTURE(by);
        CAPTURE(value);
        CHECK(worst(out, by == "deviation" ? std::vector<double>(99, 0.0)
                                           : normalized(doubles(in), o)) < 2e-7);
      }
}

TEST_CASE("normalize_samples: a recording that is too long, or not finite, fails by name") {
  SampleStage stage("normalize_samples", {{"hold", 100}});
  for (const std::int64_t block : {0, 30})
    CHECK(stage.run(Shorts(101, 1), block)
              .entry.reason.find("is longer than hold: more than 100 samples (0.0125 s)") == 0);
  CHECK(stage.run(Shorts(100, 1), 30).ok());
  std::vector<float> bad(50, 0.5F);
  bad[33] = std::nanf("");
  CHECK(stage.run(bad, 20).entry.reason == "sample 33 is not a finite number");
  CHECK_FALSE(stage.length_of(101).has_value());
}

TEST_CASE("normalize_samples: each window of segment by its own part, silence behind its end") {
  const TempFolder folder;
  write_clips(folder);
  const std::string window = ", length: 1000, hop: 600, tail: pad}\n";
  const std::string segment = "  seg: {stage: segment, from: decode" + window;
  for (const Norm& o : {Norm{}, Norm{.by = "rms", .level = -25, .eps = 1e-6, .limit = true}}) {
    const std::string normalize =
        fmt::format("  cut: {{stage: normalize_samples, from: seg, by: {}{}}}\n", o.by,
                    o.by == "rms" ? ", level: -25dB, limit: true" : "");
    const Output out = output(folder, graph(segment + normalize, kSamples, ", block: 64KiB"));
    CHECK(out.unit == std::string(o.by == "rms" ? "full scale" : "deviations"));
    for (const auto& file : out.files) {
      CAPTURE(file.path);
      const std::vector<double> all = doubles(clip(folder, file.path));
      std::vector<double> expected;
      for (std::int64_t row = 0; row < file.count; ++row) {
        const auto from = all.begin() + row * 600;
        const auto end = all.end() - from > 1000 ? from + 1000 : all.end();
        std::vector<double> part = normalized({from, end}, o);
        part.resize(1000, 0.0);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      CHECK(worst(out.rows_of(file.path), expected) < 2e-7);
    }
    const std::string mel =
        "  last: {stage: mel, from: cut, sample_rate: 8000, n_fft: 256, hop: 100, n_mels: 8}\n";
    const Output small = output(folder, graph(segment + normalize, mel, ", block: 64KiB"));
    const Output large = output(folder, graph(segment + normalize, mel));
    CHECK(small.difference(large) == "");
    CHECK(small.shape[0] == out.shape[0]);
  }
}

TEST_CASE(
    "fit_samples: samples and mel of a job, in any blocks; padding of mel sees what is added") {
  const TempFolder folder;
  write_clips(folder);
  struct Case {
    const char* options;
    Fit fit;
  };
  for (const auto& [options, fit] :
       {Case{"multiple: 80ms", {.multiple = 640}},
        {"length: 1s, pad_mode: repeat_whole", {.length = 8000, .mode = "repeat_whole"}},
        {"pad_left: 300, multiple: 128, pad_right: 10ms, pad_mode: reflect",
         {.multiple = 128, .left = 300, .right = 80, .mode = "reflect"}}}) {
    CAPTURE(options);
    const std::string nodes =
        fmt::format("  fit: {{stage: fit_samples, from: decode, {}}}\n", options) + kWhole;
    const Output out = output(folder, graph(nodes, kSamples));
    CHECK(output(folder, graph(nodes, kSamples, ", block: 64KiB")).difference(out) == "");
    for (const auto& file : out.files)
      CHECK(out.rows_of(file.path) == floats(fitted(clip(folder, file.path), fit)));
    // A recording that has the samples already gives the same rows.
    const std::string mel =
        "  last: {stage: mel, from: cut, sample_rate: 8000, n_fft: 256, hop: 100, n_mels: 8}\n";
    const Output rows = output(folder, graph(nodes, mel));
    CHECK(output(folder, graph(nodes, mel, ", block: 64KiB")).difference(rows) == "");
    const TempFolder made;
    for (const auto& file : out.files)
      write_audio(made.file("clips/" + file.path), audio_kind("wav float"), kRate,
                  out.rows_of(file.path));
    const Output same = output(made, graph("  cut: {stage: segment, from: decode}\n", mel));
    CHECK(same.mel == rows.mel);
  }
}

TEST_CASE("fit_samples: each window of segment is a recording of its own") {
  const TempFolder folder;
  write_clips(folder);
  const std::string segment =
      "  seg: {stage: segment, from: decode, length: 1000, hop: 600, tail: pad}\n";
  struct Case {
    const char* options;
    Fit fit;
  };
  for (const auto& [options, fit] :
       {Case{"multiple: 640, pad_left: 50, pad_mode: reflect",
             {.multiple = 640, .left = 50, .mode = "reflect"}},
        {"length: 300, pad_right: 7", {.length = 300, .right = 7}},
        {"length: 2500, pad_mode: repeat", {.length = 2500, .mode = "repeat"}},
        {"multiple: 300, rest: drop", {.multiple = 300, .drop = true}}}) {
    CAPTURE(options);
    const std::string nodes =
        segment + fmt::format("  cut: {{stage: fit_samples, from: seg, {}}}\n", options);
    const Output out = output(folder, graph(nodes, kSamples, ", block: 64KiB"));
    for (const auto& file : out.files) {
      const Shorts all = clip(folder, file.path);
      std::vector<float> expected;
      for (std::int64_t row = 0; row < file.count; ++row) {
        const auto from = all.begin() + row * 600;
        Shorts window(from, all.end() - from > 1000 ? from + 1000 : all.end());
        window.resize(1000, 0);
        const std::vector<float> part = floats(fitted(window, fit));
        expected.insert(expected.end(), part.begin(), part.end());
      }
      CHECK(out.rows_of(file.path) == expected);
    }
    CHECK(output(folder, graph(nodes, kSamples)).difference(out) == "");
  }
}

TEST_CASE("normalize_samples, fit_samples: in the order of the graph") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 5000, kRate);
  const Norm deviation;
  const Fit fit{.length = 8000};
  const std::vector<double> in = doubles(clip(folder, "a.wav"));
  std::vector<double> before = normalized(in, deviation), after = in;
  before.resize(8000, 0.0);  // silence is not among what counts, and stays 0
  after.resize(8000, 0.0);
  after = normalized(after, deviation);
  const std::string last = kWhole + std::string(kSamples);
  const Output first = output(folder, graph("  norm: {stage: normalize_samples, from: decode}\n"
                                            "  fit: {stage: fit_samples, from: norm, length: 1s}\n",
                                            last));
  CHECK(worst(first.mel, before) < 2e-7);
  const Output second =
      output(folder, graph("  norm: {stage: fit_samples, from: decode, length: 1s}\n"
                           "  fit: {stage: normalize_samples, from: norm}\n",
                           last));
  CHECK(worst(second.mel, after) < 2e-7);
  CHECK(first.texts.at("feature_fingerprint") != second.texts.at("feature_fingerprint"));
}

TEST_CASE("normalize_samples, fit_samples: each utterance of a recording is one of its own") {
  const TempFolder folder;
  write_wav(folder.file("clips/long.wav"), 60000, kRate);
  folder.write("clips/u.csv", "path,start,end\nlong.wav,0.5,2\nlong.wav,1,1.25\nlong.wav,4,7.5\n");
  const std::string files = ", manifest: \"${DATA}/u.csv\", utterances: {}";
  const std::string nodes =
      "  norm: {stage: normalize_samples, from: decode}\n"
      "  fit: {stage: fit_samples, from: norm, multiple: 1000}\n" +
      std::string(kWhole);
  const std::vector<double> all = doubles(clip(folder, "long.wav"));
  std::vector<double> expected;
  for (const auto& [from, to] : {std::pair{4000, 16000}, {8000, 10000}, {32000, 60000}}) {
    std::vector<double> part = normalized({all.begin() + from, all.begin() + to}, {});
    part.resize((part.size() + 999) / 1000 * 1000, 0.0);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  for (const char* decode : {"", ", block: 64KiB"}) {
    const Output out = output(folder, graph(nodes, kSamples, decode, files));
    CHECK(worst(out.mel, expected) < 2e-7);
  }
}

TEST_CASE("fit_samples, normalize_samples: what cannot be is refused, with what can") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  struct Row {
    std::string nodes, message;
  };
  const auto fit = [](const std::string& options) {
    return "  fit: {stage: fit_samples, from: decode" + options + "}\n" + kWhole + kSamples;
  };
  const auto norm = [](const std::string& options) {
    return "  fit: {stage: normalize_samples, from: decode" + options + "}\n" + kWhole + kSamples;
  };
  const Row rows[] = {
      {fit(""),
       "fit: needs length, multiple of more than one sample, extra, pad_left or pad_right"},
      {fit(", multiple: 0"), "fit.multiple: is no sample; give a length of at least one"},
      {fit(", length: 0"), "fit.length: nothing would be left of a recording"},
      {fit(", multiple: 9, pad_mode: repeat"),
       "fit.pad_mode: repeat fills recordings up to length"},
      {fit(", length: 9, pad_mode: repeatpad"), "write repeat_whole"},
      {fit(", pad_to_multiple_of: 128"), "use 'multiple' instead"},
      {fit(", length: 100h"), "memory.host: 64MiB is too little"},
      {norm(", by: rms"), "fit.level: is missing; write the level that recordings get"},
      {norm(", by: lufs"), "write rms; loudness by ITU-R BS.1770 is not there"},
      {norm(", do_normalize: true"), "use 'by' instead"},
      {norm(", hold: 2h"), "memory.host: 64MiB is too little"},
      {"  cut: {stage: segment, from: decode}\n"
       "  norm: {stage: normalize_samples, from: cut}\n"
       "  last: {stage: samples, from: norm, sample_rate: 8000}\n",
       "norm.from: the input is not cut into windows; take from a node before segment"},
      {"  fit: {stage: fit_samples, from: decode, multiple: 10ms}\n"
       "  cut: {stage: segment, from: fit}\n  last: {stage: samples, from: cut}\n",
       "fit.multiple: the sample rate is not known; give a number of samples"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    const std::string error = problems_in(
        [&] { return run_job(graph(row.nodes, ""), in_out(folder / "clips", folder / "out.h5")); });
    CAPTURE(error);
    CHECK(error.find(row.message) != std::string::npos);
  }
  const std::string narrow = problems_in([&] {
    std::string yaml = graph(norm(""), "");
    yaml.replace(yaml.find("path: \"${OUT}\""), 0, "dtype: int16, ");
    return run_job(yaml, in_out(folder / "clips", folder / "out.h5"));
  });
  CHECK(narrow.find("int16") != std::string::npos);
}

}  // namespace melflow::test::sample_numbers_test
