// The fused kernel's source, run on the host, against the definition in double precision.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/fused_shape.h"
#include "stages/device/kernel_front_end.h"
#include "tests/support/host_driver.h"
#include "tests/support/kernel_checks.h"

namespace melflow::cuda {
namespace {

using O = MelOptions;
using namespace testing;

struct Kind {
  std::string name;
  NumberType operands = NumberType::float32;
  NumberType rows = NumberType::float32;
  SampleType samples = SampleType::int16;
};
const Kind plain = {"int16"};
const Kind of_floats = {"float", {}, {}, SampleType::float32};

RowBuffer buffer_of(const MelOptions& options, const Batch& batch, const Kind& kind,
                    LaneOrder order = LaneOrder::up) {
  const MelPlan plan(options);
  const FusedTables tables(kernel_front_end(plan), kind.operands);
  RowBuffer rows(kind.rows, batch.n_frames() * static_cast<std::size_t>(plan.columns()));
  SampleType type = kind.samples;
  const Batch taken = conditioned(plan, batch, type, order);
  run_fused(tables, kind.operands,
            {taken.samples(type), type, taken.offsets.data(), taken.n_frames()}, rows.rows(),
            order);
  return rows;
}

std::vector<double> rows_of(const MelOptions& options, const Batch& batch, const Kind& kind,
                            LaneOrder order = LaneOrder::up) {
  return buffer_of(options, batch, kind, order).values();
}

// All front ends of all sizes: the worst of each kind.
std::vector<Errors> errors_of_all(const std::vector<Kind>& kinds,
                                  const std::vector<std::int16_t>& samples) {
  std::vector<Errors> worst(kinds.size());
  for (const int n_fft : fused_sizes) {
    for (const Named& set : front_ends(n_fft)) {
      CAPTURE(n_fft);
      CAPTURE(set.name);
      const MelOptions o = linear(set.options);
      const reference::Rows expected = reference::mel(o, exact(samples));
      const Batch batch = make_batch(MelPlan(o), samples);
      REQUIRE(batch.n_frames() == expected.size());
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        CAPTURE(kinds[i].name);
        Kind kind = kinds[i];
        if (batch.int16.empty()) kind.samples = SampleType::float32;  // conditioned
        const Errors e =
            errors_of(o, expected, rows_of(o, batch, kind), rows_of(in_db(o), batch, kind));
        CHECK(std::isfinite(e.of_peak));
        CHECK(std::isfinite(e.db));
        widen(worst[i], e);
      }
    }
  }
  for (std::size_t i = 0; i < kinds.size(); ++i)
    MESSAGE(kinds[i].name << ": at most " << worst[i].of_peak << " of the peak, " << worst[i].db
                          << " dB within 60 dB of it");
  return worst;
}

TEST_CASE("fused kernel on the host: rows agree with the definition") {
  const std::vector<Errors> worst = errors_of_all({plain, of_floats}, recording(3001));
  for (const Errors& e : worst) {
    CHECK(e.of_peak <= 1e-6);
    CHECK(e.db <= 1e-3);
  }
}

TEST_CASE("fused kernel on the host: a click at any place of a frame, in bands of many bins") {
  for (const int n_fft : fused_sizes) {
    for (const int n_mels : {1, 13}) {
      CAPTURE(n_fft);
      CAPTURE(n_mels);
      const MelOptions o = of_clicks(n_fft, n_mels);
      const Batch batch = make_batch(MelPlan(o), reference::click(n_fft));
      const Errors e = errors_of(o, reference::click_rows(o), rows_of(o, batch, plain),
                                 rows_of(in_db(o), batch, plain));
      CHECK(e.of_peak <= 1e-6);
    }
  }
}

TEST_CASE("fused kernel on the host: operands of 16 bits stay within their limits") {
  const std::vector<Errors> worst = errors_of_all(
      {{"fp16", NumberType::float16}, {"bf16", NumberType::bfloat16}}, recording(3001));
  CHECK(worst[0].of_peak <= fp16_operand_limits.of_peak);
  CHECK(worst[0].db <= fp16_operand_limits.db);
  CHECK(worst[1].of_peak <= bf16_operand_limits.of_peak);
  CHECK(worst[1].db <= bf16_operand_limits.db);
}

TEST_CASE("fused kernel on the host: fp16 operands hold samples at full scale") {
  // The largest value that any point of the transform can have: all of a frame in one bin.
  for (const int n_fft : fused_sizes) {
    for (const double input_scale : {1.0, 32768.0}) {
      CAPTURE(n_fft);
      CAPTURE(input_scale);
      MelOptions o;
      o.n_fft = n_fft;
      o.hop = n_fft;
      o.center = false;
      o.window = O::Window::boxcar;
      o.output = O::Output::spectrogram;
      o.input_scale = input_scale;
      for (const bool alternating : {false, true}) {
        std::vector<std::int16_t> samples;
        for (int i = 0; i < n_fft; ++i)
          samples.push_back(alternating && i % 2 == 1 ? 32767 : -32768);
        const Batch batch = make_batch(MelPlan(o), samples);
        const std::vector<double> row = rows_of(o, batch, {"fp16", NumberType::float16});
        const double peak = std::pow(n_fft * input_scale, 2);
        CHECK(row[alternating ? static_cast<std::size_t>(n_fft / 2) : 0] ==
              doctest::Approx(peak).epsilon(2e-3));
        for (const double value : row) CHECK(value <= peak * 1.002);
      }
    }
  }
}

TEST_CASE("fused kernel on the host: every log, with its offset, floor and reference") {
  const std::vector<std::int16_t> samples = recording(2501);
  double worst = 0;
  for (const int n_fft : fused_sizes) {
    for (const auto log : {O::Log::none, O::Log::ln, O::Log::log10, O::Log::db}) {
      for (const double power : {1.0, 2.0}) {
        MelOptions o;
        o.n_fft = n_fft;
        o.n_mels = 40;
        o.power = power;
        o.log = log;
        if (o.log == O::Log::none) {
          o.htk_mode = O::HtkMode::kaldi;  // bands floored at 1
          o.input_scale = 8.0;
        } else {
          o.amin = 2e-2;
          o.ref.value = 0.5;
          o.log_offset = 1e-3;
        }
        CAPTURE(n_fft);
        CAPTURE(name_of(log));
        CAPTURE(power);
        const MelPlan plan(o);
        const reference::Rows expected = reference::mel(o, exact(samples));
        const Batch batch = make_batch(plan, samples);
        const std::vector<double> rows = rows_of(o, batch, plain);
        if (o.log == O::Log::none) {
          const Errors e = errors_of(o, expected, rows, rows_of(in_db(o), batch, plain));
          CHECK(e.of_peak <= 1e-6);
          CHECK(*std::min_element(rows.begin(), rows.end()) == 1.0);
        } else {
          const double error = level_error(plan, expected, rows);
          CHECK(error <= 4e-4);
          worst = std::max(worst, error);
        }
      }
    }
  }
  MESSAGE("at most " << worst << " of the log's units");
}

TEST_CASE("fused kernel on the host: rows of every type are the fp32 rows, rounded once") {
  const std::vector<std::int16_t> samples = recording(3001);
  for (const int n_fft : fused_sizes) {
    CAPTURE(n_fft);
    MelOptions o;
    o.n_fft = n_fft;
    o.n_mels = 33;
    o.use_energy = true;  // the column is left as it was: NaN
    o.raw_energy = false;
    o.log = O::Log::ln;
    const Batch batch = make_batch(MelPlan(o), samples);
    const std::vector<double> whole = rows_of(o, batch, plain);
    for (const NumberType type : {NumberType::float16, NumberType::bfloat16}) {
      const RowBuffer buffer = buffer_of(o, batch, {"", NumberType::float32, type});
      const std::vector<double> rounded = buffer.values();
      const std::vector<std::uint16_t> stored = buffer.halves();
      // Half a unit of the last place, 11 and 8 bits.
      const double step = type == NumberType::float16 ? 0x1p-11 : 0x1p-8;
      for (std::size_t i = 0; i < whole.size(); ++i) {
        if (i % 34 == 0) {
          CHECK(std::isnan(whole[i]));
          CHECK(std::isnan(rounded[i]));
        } else {
          CHECK(std::abs(rounded[i] - whole[i]) <= step * std::abs(whole[i]));
          // The bytes that a sink would make of the row.
          const auto value = static_cast<float>(whole[i]);
          std::uint16_t converted = 0;
          from_float({&value, 1}, type, &converted);
          CHECK(stored[i] == converted);
        }
      }
    }
  }
}

TEST_CASE(
    "fused kernel on the host: rows of 16 bits agree with the definition, but for their rounding") {
  const std::vector<std::int16_t> samples = recording(3001);
  for (const int n_fft : fused_sizes) {
    for (const NumberType type : {NumberType::float16, NumberType::bfloat16}) {
      CAPTURE(n_fft);
      MelOptions o;
      o.n_fft = n_fft;
      o.n_mels = 40;
      o.log = O::Log::db;
      const reference::Rows expected = reference::mel(o, exact(samples));
      const std::vector<double> rows =
          rows_of(o, make_batch(MelPlan(o), samples), {"", NumberType::float32, type});
      const double step = type == NumberType::float16 ? 0x1p-11 : 0x1p-8;
      std::size_t i = 0, compared = 0;
      for (const std::vector<double>& row : expected) {
        const double peak = *std::max_element(row.begin(), row.end());
        for (const double level : row) {
          const double error = std::abs(rows[i++] - level);
          if (level < peak - 60) continue;
          ++compared;
          CHECK(error <= step * (std::abs(level) + 1e-3) + 1e-3);
        }
      }
      CHECK(i == rows.size());
      CHECK(compared > rows.size() / 3);
    }
  }
}

TEST_CASE("fused kernel on the host: no phase reads what another lane writes in it") {
  const std::vector<std::int16_t> samples = recording(2600);
  for (const int n_fft : fused_sizes) {
    for (const NumberType operands :
         {NumberType::float32, NumberType::float16, NumberType::bfloat16}) {
      for (const O::Output output : {O::Output::mel, O::Output::spectrogram}) {
        CAPTURE(n_fft);
        MelOptions o;
        o.n_fft = n_fft;
        o.n_mels = 50;
        o.output = output;
        const Batch batch = make_batch(MelPlan(o), samples);
        const Kind kind = {"", operands};
        CHECK(rows_of(o, batch, kind, LaneOrder::up) == rows_of(o, batch, kind, LaneOrder::down));
      }
    }
  }
}

TEST_CASE("fused kernel on the host: a row is that of its frame, wherever and beside whatever") {
  const std::vector<std::int16_t> samples = recording(3000);
  for (const int n_fft : fused_sizes) {
    CAPTURE(n_fft);
    MelOptions o;
    o.n_fft = n_fft;
    o.hop = 93;  // every second frame begins at an odd sample
    o.n_mels = 20;
    o.center = false;
    const Batch batch = make_batch(MelPlan(o), samples);
    const std::vector<double> all = rows_of(o, batch, plain);
    // An odd number of frames, and each of them alone.
    for (std::size_t t = 0; t < batch.n_frames(); ++t) {
      Batch alone = batch;
      alone.offsets = {batch.offsets[t]};
      const std::vector<double> row = rows_of(o, alone, plain);
      CHECK(std::equal(row.begin(), row.end(), all.begin() + static_cast<std::ptrdiff_t>(t * 20)));
    }
  }
}

TEST_CASE("fused kernel on the host: no sample outside the frame is read") {
  for (const int n_fft : fused_sizes) {
    for (const int length : {n_fft, n_fft - 1, n_fft / 2 + 1, 1}) {
      CAPTURE(n_fft);
      CAPTURE(length);
      MelOptions o;
      o.n_fft = n_fft;
      o.win_length = length;
      o.align = O::Align::left;
      o.center = false;
      o.hop = n_fft;
      o.window = O::Window::boxcar;
      o.output = O::Output::spectrogram;
      for (const std::size_t begin : {std::size_t{0}, std::size_t{1}}) {
        // NaN around the frame; exactly as much memory as that, so that a sanitizer sees the rest.
        std::vector<float> samples(begin + static_cast<std::size_t>(length),
                                   std::numeric_limits<float>::quiet_NaN());
        for (std::size_t i = begin; i < samples.size(); ++i)
          samples[i] = std::sin(static_cast<float>(i - begin));
        const auto offset = static_cast<std::uint32_t>(begin);
        const FusedTables tables(kernel_front_end(MelPlan(o)), NumberType::float32);
        RowBuffer rows(NumberType::float32, static_cast<std::size_t>(n_fft / 2 + 1));
        run_fused(tables, NumberType::float32, {samples.data(), SampleType::float32, &offset, 1},
                  rows.rows());
        for (const double value : rows.values()) CHECK(std::isfinite(value));
      }
    }
  }
}

TEST_CASE("fused kernel on the host: silence is the floor, NaN and infinity are not hidden") {
  for (const int n_fft : fused_sizes) {
    CAPTURE(n_fft);
    MelOptions o;
    o.n_fft = n_fft;
    o.n_mels = 10;
    o.center = false;
    o.log = O::Log::db;
    Batch batch;
    batch.float32.assign(static_cast<std::size_t>(n_fft), 0.0F);
    batch.offsets = {0};
    for (const double value : rows_of(o, batch, of_floats)) CHECK(value == doctest::Approx(-100.0));
    for (const float odd :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      batch.float32[static_cast<std::size_t>(n_fft / 3)] = odd;
      for (const double value : rows_of(o, batch, of_floats)) CHECK_FALSE(std::isfinite(value));
    }
  }
}

TEST_CASE("fused tables: another size is refused") {
  MelOptions o;
  o.n_fft = 480;
  CHECK_THROWS_WITH_AS(FusedTables(kernel_front_end(MelPlan(o)), NumberType::float32),
                       "n_fft is 480, the fused kernel has 256, 400, 512, 1024 and 2048",
                       std::invalid_argument);
}

}  // namespace
}  // namespace melflow::cuda
