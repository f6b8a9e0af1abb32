// Compares MelKernel's rows with the definition, and checks what their bytes may depend on.

#include "stages/features/mel/mel_kernel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/reference_mel.h"

namespace melflow::mel_kernel_test {
namespace {

using O = MelOptions;

MelKernel make_kernel(const MelOptions& options,
                      std::string_view set = MelKernel::instruction_set()) {
  return MelKernel(std::make_shared<const MelPlan>(options), set);
}

std::vector<std::int16_t> noise(std::int64_t n, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::vector<std::int16_t> samples(static_cast<std::size_t>(n));
  for (auto& s : samples) s = static_cast<std::int16_t>(generator() % 65536U - 32768U);
  return samples;
}

std::vector<float> as_float(const std::vector<std::int16_t>& samples) {
  std::vector<float> out;
  for (const std::int16_t s : samples) out.push_back(static_cast<float>(s) / 32768.0F);
  return out;
}

template <class Sample>
std::vector<float> whole(const MelKernel& kernel, const std::vector<Sample>& samples) {
  const auto n = static_cast<std::int64_t>(samples.size());
  const std::int64_t frames = kernel.plan().frames(n);
  std::vector<float> rows(static_cast<std::size_t>(frames * kernel.plan().n_mels()));
  MelKernel::Scratch scratch = kernel.make_scratch();
  kernel.frames(SignalView<Sample>{samples.data(), 0, n, n}, 0, frames, rows.data(), scratch);
  return rows;
}

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Setting {
  std::string name;
  std::function<void(MelOptions&)> change;
};

const std::vector<Setting>& settings() {
  static const std::vector<Setting> table{
      {"defaults", [](O&) {}},
      {"hop beyond n_fft", [](O& o) { o.n_fft = 64, o.hop = 100, o.n_mels = 7; }},
      {"not centred, 32 bands",
       [](O& o) {
         o.sample_rate = 4096, o.n_fft = 512, o.hop = 512, o.center = false, o.n_mels = 32;
         o.log = O::Log::db;
       }},
      {"constant padding", [](O& o) { o.pad_mode = O::PadMode::constant, o.hop = 90; }},
      {"edge padding", [](O& o) { o.pad_mode = O::PadMode::edge, o.win_length = 301; }},
      {"power 1, db",
       [](O& o) { o.power = 1, o.log = O::Log::db, o.ref.value = 0.5, o.amin = 1e-5; }},
      {"power 3", [](O& o) { o.power = 3, o.n_mels = 9; }},
      {"power 0.5, ln", [](O& o) { o.power = 0.5, o.log = O::Log::ln; }},
      {"hamming, normalized",
       [](O& o) {
         o.window = O::Window::hamming, o.normalized = O::Normalized::window;
         o.periodic = false, o.log = O::Log::log10, o.log_offset = 1e-3;
       }},
      {"blackman, slaney",
       [](O& o) {
         o.window = O::Window::blackman, o.mel_scale = O::MelScale::slaney;
         o.mel_norm = O::MelNorm::slaney, o.n_mels = 41, o.fmin = 50, o.fmax = 7000;
       }},
      {"odd n_fft", [](O& o) { o.n_fft = 401, o.window = O::Window::boxcar, o.n_mels = 20; }},
      {"n_fft 2", [](O& o) { o.n_fft = 2, o.n_mels = 1, o.window = O::Window::boxcar; }},
      {"n_fft 3", [](O& o) { o.n_fft = 3, o.n_mels = 2, o.window = O::Window::boxcar; }},
      {"n_fft 6", [](O& o) { o.n_fft = 6, o.n_mels = 2; }},
      {"n_fft 14", [](O& o) { o.n_fft = 14, o.n_mels = 3; }},
      {"n_fft 16", [](O& o) { o.n_fft = 16, o.n_mels = 3; }},
      {"n_fft 18", [](O& o) { o.n_fft = 18, o.n_mels = 8; }},
      {"n_fft 30", [](O& o) { o.n_fft = 30, o.n_mels = 5; }},
      {"n_fft 1000", [](O& o) { o.n_fft = 1000, o.n_mels = 80; }},
      // Every radix as the last step and before it; and one that no step has.
      {"n_fft 4 (2)", [](O& o) { o.n_fft = 4, o.n_mels = 2; }},
      {"n_fft 8 (4)", [](O& o) { o.n_fft = 8, o.n_mels = 2; }},
      {"n_fft 22 (11)", [](O& o) { o.n_fft = 22, o.n_mels = 4; }},
      {"n_fft 26 (13)", [](O& o) { o.n_fft = 26, o.n_mels = 4; }},
      {"n_fft 858 (13 11 3)", [](O& o) { o.n_fft = 858, o.n_mels = 40; }},
      {"n_fft 1540 (11 7 5 2)", [](O& o) { o.n_fft = 1540, o.n_mels = 40; }},
      {"n_fft 882 (7 7 3 3)", [](O& o) { o.n_fft = 882, o.n_mels = 40; }},
      {"n_fft 1664 (13 8 8)", [](O& o) { o.n_fft = 1664, o.n_mels = 40; }},
      {"n_fft 2048 (8 8 4 4)", [](O& o) { o.n_fft = 2048, o.n_mels = 100; }},
      {"n_fft 578 (17 17)", [](O& o) { o.n_fft = 578, o.n_mels = 40; }},
      {"double", [](O& o) { o.precision = O::Precision::float64, o.log = O::Log::db; }},
      {"double, conditioned",
       [](O& o) {
         o.precision = O::Precision::float64, o.input_scale = 32768, o.preemphasis = 0.97;
         o.preemphasis_of = O::PreemphasisOf::frame, o.remove_dc = true, o.n_fft = 401;
         o.n_mels = 40;
       }},
  };
  return table;
}

// Returns a value's error in decibels; in linear outputs, relative to the frame's largest.
double error_db(const MelOptions& o, double value, double expected) {
  if (o.log == O::Log::db) return std::abs(value - expected);
  const double per_unit = 20.0 / o.power / std::log(10.0);
  if (o.log == O::Log::log10) return std::abs(value - expected) * 20.0 / o.power;
  if (o.log == O::Log::ln) return std::abs(value - expected) * per_unit;
  return std::abs(value / expected - 1.0) * per_unit;
}

TEST_CASE("mel kernel: rows agree with the definition") {
  for (const std::string_view set : MelKernel::instruction_sets()) {
    CAPTURE(set);
    for (const Setting& setting : settings()) {
      CAPTURE(setting.name);
      MelOptions options;
      setting.change(options);
      const MelKernel kernel = make_kernel(options, set);
      const std::vector<std::int16_t> samples = noise(2200);
      const std::vector<float> rows = whole(kernel, samples);
      const std::vector<float> exact = as_float(samples);
      const reference::Rows expected =
          reference::mel(options, std::vector<double>(exact.begin(), exact.end()));
      const auto n_mels = static_cast<std::size_t>(options.n_mels);
      REQUIRE(rows.size() == expected.size() * n_mels);
      double worst = 0.0;
      for (std::size_t t = 0; t < expected.size(); ++t) {
        for (std::size_t m = 0; m < n_mels; ++m) {
          const float value = rows[t * n_mels + m];
          if (kernel.plan().bands()[m].count == 0 && options.log == O::Log::none) {
            CHECK(value == 0.0F);
          } else {
            worst = std::max(worst, error_db(options, value, expected[t][m]));
          }
        }
      }
      CHECK(worst < 2e-4);
    }
  }
}

TEST_CASE("mel kernel: short utterances are padded as numpy pads them") {
  for (const auto mode : {O::PadMode::reflect, O::PadMode::constant, O::PadMode::edge}) {
    for (const std::int64_t length : {1, 2, 3, 31, 32, 33, 64, 65}) {
      CAPTURE(name_of(mode));
      CAPTURE(length);
      MelOptions options;
      options.n_fft = 64;
      options.n_mels = 4;
      options.hop = 5;
      options.pad_mode = mode;
      options.log = O::Log::db;
      const auto samples = noise(length, 7);
      const std::vector<float> rows = whole(make_kernel(options), samples);
      const std::vector<float> exact = as_float(samples);
      const auto expected =
          reference::mel(options, std::vector<double>(exact.begin(), exact.end()));
      REQUIRE(rows.size() == expected.size() * 4);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        CHECK(rows[i] == doctest::Approx(expected[i / 4][i % 4]).epsilon(1e-4));
      }
    }
  }
}

TEST_CASE("mel kernel: weak bands beside a loud tone stay exact") {
  MelOptions options;
  options.n_fft = 512;
  options.window = O::Window::blackman;
  options.log = O::Log::db;
  options.n_mels = 40;
  std::vector<float> samples;
  for (int i = 0; i < 2000; ++i) samples.push_back(static_cast<float>(std::sin(0.05 * i)));
  const std::vector<float> rows = whole(make_kernel(options), samples);
  const auto expected =
      reference::mel(options, std::vector<double>(samples.begin(), samples.end()));
  for (std::size_t t = 2; t < 6; ++t) {
    const double peak = *std::max_element(expected[t].begin(), expected[t].end());
    for (std::size_t m = 0; m < 40; ++m) {
      if (expected[t][m] < peak - 90.0) continue;
      CHECK(std::abs(rows[t * 40 + m] - expected[t][m]) < 0.01);
    }
  }
}

TEST_CASE("mel kernel: 16-bit samples and the same values as float give the same bytes") {
  for (const Setting& setting : settings()) {
    CAPTURE(setting.name);
    MelOptions options;
    setting.change(options);
    const MelKernel kernel = make_kernel(options);
    const auto samples = noise(1777, 3);
    CHECK(same_bytes(whole(kernel, samples), whole(kernel, as_float(samples))));
  }
}

// Computes rows block by block: each block sees its own samples and `context` earlier ones.
std::vector<float> blockwise(const MelKernel& kernel, const std::vector<std::int16_t>& samples,
                             const std::vector<std::int64_t>& sizes) {
  const MelPlan& plan = kernel.plan();
  const auto length = static_cast<std::int64_t>(samples.size());
  std::vector<float> rows;
  MelKernel::Scratch scratch = kernel.make_scratch();
  std::int64_t seen = 0;
  std::int64_t done = 0;
  const auto add = [&](std::int64_t begin, std::int64_t until, std::int64_t utterance) {
    const std::vector<std::int16_t> block(samples.begin() + begin, samples.begin() + seen);
    rows.resize(static_cast<std::size_t>(until * plan.n_mels()));
    kernel.frames(SignalView<std::int16_t>{block.data(), begin, seen, utterance}, done,
                  until - done, rows.data() + done * plan.n_mels(), scratch);
    done = until;
  };
  for (std::size_t i = 0; seen < length; ++i) {
    const std::int64_t begin = std::max<std::int64_t>(0, seen - plan.context());
    seen = std::min(length, seen + sizes[i % sizes.size()]);
    add(begin, plan.frames_ready(seen), -1);
  }
  add(std::max<std::int64_t>(0, seen - plan.context()), plan.frames(length), length);
  return rows;
}

TEST_CASE("mel kernel: an utterance in blocks gives the bytes of the whole utterance") {
  for (const Setting& setting : settings()) {
    for (const std::int64_t length : {1, 150, 1999}) {
      CAPTURE(setting.name);
      CAPTURE(length);
      MelOptions options;
      setting.change(options);
      const MelKernel kernel = make_kernel(options);
      const auto samples = noise(length, 5);
      const std::vector<float> rows = whole(kernel, samples);
      for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
               {1}, {7}, {199, 1, 201}, {400}, {513, 31}, {1500}, {5000}}) {
        CAPTURE(sizes[0]);
        CHECK(same_bytes(blockwise(kernel, samples, sizes), rows));
      }
    }
  }
}

TEST_CASE("mel kernel: AVX2 and AVX-512 give the same bytes") {
  const std::vector<std::string_view> sets = MelKernel::instruction_sets();
  if (sets.front() != "avx512") return;
  for (const Setting& setting : settings()) {
    CAPTURE(setting.name);
    MelOptions options;
    setting.change(options);
    const auto samples = noise(2500, 7);
    CHECK(same_bytes(whole(make_kernel(options, "avx512"), samples),
                     whole(make_kernel(options, "avx2"), samples)));
  }
}

TEST_CASE("mel kernel: utterances added one after another, of both sample types, are those alone") {
  MelOptions options;
  options.n_fft = 64;
  options.hop = 30;
  options.n_mels = 6;
  const MelKernel kernel = make_kernel(options);
  MelKernel::Scratch scratch = kernel.make_scratch();
  for (const bool alternate : {false, true}) {
    std::vector<std::vector<std::int16_t>> utterances;
    std::vector<std::vector<float>> as_floats, rows, expected;
    for (int i = 0; i < 40; ++i) {
      utterances.push_back(noise(1 + 17 * i, 100 + static_cast<unsigned>(i)));
      as_floats.push_back(as_float(utterances.back()));
      expected.push_back(whole(kernel, utterances.back()));
      rows.emplace_back(expected.back().size());
    }
    for (std::size_t i = 0; i < utterances.size(); ++i) {
      const auto n = static_cast<std::int64_t>(utterances[i].size());
      const std::int64_t frames = kernel.plan().frames(n);
      if (alternate && i % 3 == 1)
        kernel.add(SignalView<float>{as_floats[i].data(), 0, n, n}, 0, frames, rows[i].data(),
                   scratch);
      else
        kernel.add(SignalView<std::int16_t>{utterances[i].data(), 0, n, n}, 0, frames,
                   rows[i].data(), scratch);
    }
    kernel.flush(scratch);
    for (std::size_t i = 0; i < utterances.size(); ++i) CHECK(same_bytes(rows[i], expected[i]));
  }
}

TEST_CASE("mel kernel: a transform too large for a group agrees with its neighbour in size") {
  // n_fft 16,384 computes many frames at once, 32,768 uses FFTW frame by frame: a tone in the
  // middle of a bin of both has equal power, relative to the square of the length.
  std::vector<float> peaks;
  for (const int n_fft : {1 << 14, 1 << 15}) {
    MelOptions options;
    options.sample_rate = 1 << 15;
    options.n_fft = n_fft;
    options.hop = n_fft;
    options.center = false;
    options.window = O::Window::boxcar;
    options.output = O::Output::spectrogram;
    const MelKernel kernel = make_kernel(options);
    std::vector<float> samples(static_cast<std::size_t>(3 * n_fft));
    for (std::size_t i = 0; i < samples.size(); ++i)
      samples[i] =
          static_cast<float>(std::sin(2.0 * std::acos(-1.0) * static_cast<double>(i) / 64));
    const auto n = static_cast<std::int64_t>(samples.size());
    const auto columns = static_cast<std::size_t>(kernel.plan().columns());
    std::vector<float> rows(3 * columns);
    MelKernel::Scratch scratch = kernel.make_scratch();
    kernel.frames(SignalView<float>{samples.data(), 0, n, n}, 0, 3, rows.data(), scratch);
    for (std::size_t t = 0; t < 3; ++t)
      peaks.push_back(rows[t * columns + static_cast<std::size_t>(n_fft / 64)] /
                      (static_cast<float>(n_fft) * static_cast<float>(n_fft)));
  }
  for (const float peak : peaks) CHECK(peak == doctest::Approx(0.25).epsilon(1e-5));
}

TEST_CASE("mel kernel: one frame alone, at any address, has the bytes it has among others") {
  MelOptions options;
  options.n_fft = 512;
  options.hop = 37;
  options.n_mels = 33;
  options.log = O::Log::ln;
  const MelKernel kernel = make_kernel(options);
  const auto samples = noise(4000, 11);
  const std::vector<float> rows = whole(kernel, samples);
  const auto n = static_cast<std::int64_t>(samples.size());
  MelKernel::Scratch scratch = kernel.make_scratch();
  for (std::int64_t t = 0; t < kernel.plan().frames(n); ++t) {
    std::vector<float> row(33);
    kernel.frames(SignalView<std::int16_t>{samples.data(), 0, n, n}, t, 1, row.data(), scratch);
    CHECK(same_bytes(row, {rows.begin() + t * 33, rows.begin() + (t + 1) * 33}));
  }
}

TEST_CASE("mel kernel: threads share it, each with its own scratch") {
  MelOptions options;
  options.n_fft = 512;
  options.log = O::Log::db;
  const MelKernel kernel = make_kernel(options);
  const auto samples = noise(40000, 13);
  const std::vector<float> rows = whole(kernel, samples);
  std::vector<int> same(4, 0);
  std::vector<std::thread> threads;
  for (int& n : same) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round)
        if (same_bytes(whole(kernel, samples), rows)) ++n;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(same == std::vector<int>(4, 5));
}

TEST_CASE("mel kernel: silence is the floor, NaN and infinity are not hidden") {
  MelOptions options;
  options.n_fft = 64;
  options.n_mels = 5;
  options.center = false;
  options.log = O::Log::db;
  const MelKernel kernel = make_kernel(options);
  std::vector<float> samples(64, 0.0F);
  for (const float value : whole(kernel, samples)) CHECK(value == doctest::Approx(-100.0));
  samples[30] = 1e-42F;  // a denormal
  for (const float value : whole(kernel, samples)) CHECK(value == doctest::Approx(-100.0));
  samples[30] = std::numeric_limits<float>::quiet_NaN();
  for (const float value : whole(kernel, samples)) CHECK(std::isnan(value));
  samples[30] = 0.0F;
  for (const float value : whole(kernel, samples)) CHECK(value == doctest::Approx(-100.0));
  samples[30] = std::numeric_limits<float>::infinity();
  for (const float value : whole(kernel, samples)) CHECK_FALSE(std::isfinite(value));
}

TEST_CASE("mel kernel: what cannot be computed is refused") {
  MelOptions options;
  options.n_fft = 64;
  options.n_mels = 5;
  const MelKernel kernel = make_kernel(options);
  const auto samples = noise(200);
  std::vector<float> rows(1000);
  MelKernel::Scratch scratch = kernel.make_scratch();
  const auto call = [&](std::int64_t begin, std::int64_t end, std::int64_t length,
                        std::int64_t first, std::int64_t count) {
    kernel.frames(SignalView<std::int16_t>{samples.data(), begin, end, length}, first, count,
                  rows.data(), scratch);
  };
  CHECK_NOTHROW(call(0, 200, 200, 0, 7));
  CHECK_THROWS_WITH_AS(call(0, 200, 200, 0, 8), "frames [0, 8) asked for, the utterance has 7",
                       std::out_of_range);
  CHECK_THROWS_WITH_AS(call(0, 200, -1, 0, 7),
                       "frames [0, 7) asked for, the utterance has 6 that are ready",
                       std::out_of_range);
  CHECK_THROWS_AS(call(0, 200, 200, -1, 1), std::out_of_range);
  CHECK_THROWS_WITH_AS(call(50, 250, 300, 1, 1),
                       "a frame needs sample 0 of its utterance, given are [50, 250)",
                       std::out_of_range);
}

// Returns the logarithms of a row, passed as bins with factor 1 and offset 0.
std::vector<float> logarithms(const lanes::Loops& loops, const std::vector<float>& values) {
  const auto width = static_cast<std::size_t>(loops.width);
  const std::size_t bins = (values.size() + width - 1) / width;
  AlignedBuffer power(bins * width);
  std::fill_n(power.data(), power.size(), 1.0F);
  std::copy(values.begin(), values.end(), power.data());
  std::vector<float> out(bins * width);
  std::vector<float*> rows;  // of one lane: every width-th value
  for (std::size_t l = 0; l < width; ++l) rows.push_back(out.data() + l * bins);
  lanes::RunTables tables;
  tables.n_bins = static_cast<int>(bins);
  tables.log = true;
  tables.amin = std::numeric_limits<float>::min();
  loops.rows(tables, power.data(), rows.data());
  std::vector<float> in_order;
  for (std::size_t i = 0; i < values.size(); ++i)
    in_order.push_back(out[i % width * bins + i / width]);
  return in_order;
}

TEST_CASE("mel kernel: logarithms are right to 1e-6 over all normal floats") {
  std::vector<float> values;
  std::uint32_t bits = 0x00800000U;  // the smallest normal float
  for (; bits < 0x7f800000U; bits += 4099U) {
    float value = 0.0F;
    std::memcpy(&value, &bits, sizeof value);
    values.push_back(value);
  }
  for (float x = 0.9F; x < 1.1F; x = std::nextafter(x, 2.0F) + 1e-7F) values.push_back(x);
  const lanes::Available& available = lanes::available();
  for (int one = 0; one < available.count; ++one) {
    const lanes::Loops& loops = *available.loops[one];
    CAPTURE(loops.instruction_set);
    const std::vector<float> out = logarithms(loops, values);
    double relative = 0.0;
    double absolute = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double exact = std::log(static_cast<double>(values[i]));
      const double error = std::abs(out[i] - exact);
      if (error > 0.0) relative = std::max(relative, error / std::abs(exact));
      if (std::abs(exact) < 2.0) absolute = std::max(absolute, error);
    }
    MESSAGE("relative error " << relative << ", absolute below |ln| = 2 " << absolute);
    CHECK(relative < 1e-6);
    CHECK(absolute < 2e-6);
    const std::vector<float> odd = logarithms(loops, {1.0F, std::numeric_limits<float>::infinity(),
                                                      std::numeric_limits<float>::quiet_NaN()});
    CHECK(odd[0] == 0.0F);
    CHECK(std::isinf(odd[1]));
    CHECK(std::isnan(odd[2]));
  }
}

}  // namespace
}  // namespace melflow::mel_kernel_test
