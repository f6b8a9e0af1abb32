// The kernels around a batched transform, run on the host with FFTW between them, against the
// definition in double precision.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "stages/device/kernel_front_end.h"
#include "stages/features/mel/fftw.h"
#include "stages/features/mel/mel_signal.h"
#include "tests/support/host_driver.h"
#include "tests/support/kernel_checks.h"

namespace melflow::cuda {
namespace {

using O = MelOptions;
using namespace testing;

std::vector<double> rows_of(const MelOptions& options, const Batch& batch, SampleType samples,
                            bool in_shared_memory, NumberType type = NumberType::float32,
                            LaneOrder order = LaneOrder::up) {
  const MelPlan plan(options);
  const AnySizeTables tables(kernel_front_end(plan));
  const auto n = static_cast<std::size_t>(plan.n_fft());
  const auto n_bins = static_cast<std::size_t>(plan.n_bins());
  std::vector<float> frames(batch.n_frames() * n, std::numeric_limits<float>::quiet_NaN());
  const Batch taken = conditioned(plan, batch, samples, order);
  run_window(tables, {taken.samples(samples), samples, taken.offsets.data(), taken.n_frames()},
             frames.data());
  std::vector<Complex> spectra(batch.n_frames() * n_bins);
  const FftPlan fft(plan.n_fft());
  AlignedBuffer frame(n), spectrum(2 * n_bins);
  for (std::size_t t = 0; t < batch.n_frames(); ++t) {
    std::copy_n(frames.data() + t * n, n, frame.data());
    fft.execute(frame.data(), spectrum.data());
    for (std::size_t k = 0; k < n_bins; ++k)
      spectra[t * n_bins + k] = {spectrum.data()[2 * k], spectrum.data()[2 * k + 1]};
  }
  RowBuffer rows(type, batch.n_frames() * static_cast<std::size_t>(plan.columns()));
  run_levels(tables, spectra.data(), batch.n_frames(), rows.rows(), in_shared_memory, order);
  return rows.values();
}

TEST_CASE("any size on the host: rows agree with the definition") {
  const std::vector<std::int16_t> samples = recording(2600);
  Errors worst;
  for (const int n_fft : {400, 401, 512, 1000, 1103}) {
    for (const Named& set : front_ends(n_fft)) {
      CAPTURE(n_fft);
      CAPTURE(set.name);
      const MelOptions o = linear(set.options);
      const reference::Rows expected = reference::mel(o, exact(samples));
      const Batch batch = make_batch(MelPlan(o), samples);
      REQUIRE(batch.n_frames() == expected.size());
      for (const SampleType type : {SampleType::int16, SampleType::float32}) {
        if (type == SampleType::int16 && batch.int16.empty()) continue;  // conditioned
        const bool in_shared_memory = type == SampleType::int16 || n_fft % 2 == 0;
        const Errors e = errors_of(o, expected, rows_of(o, batch, type, in_shared_memory),
                                   rows_of(in_db(o), batch, type, in_shared_memory));
        CHECK(e.of_peak <= 1e-6);
        CHECK(e.db <= 1e-3);
        widen(worst, e);
      }
    }
  }
  MESSAGE("at most " << worst.of_peak << " of the peak, " << worst.db << " dB");
}

TEST_CASE("any size on the host: a click at any place of a frame, in bands of many bins") {
  for (const int n_fft : {1103, 4096}) {
    for (const int n_mels : {1, 13}) {
      CAPTURE(n_fft);
      CAPTURE(n_mels);
      const MelOptions o = of_clicks(n_fft, n_mels);
      const Batch batch = make_batch(MelPlan(o), reference::click(n_fft));
      const auto rows = [&](const O& options) {
        return rows_of(options, batch, SampleType::int16, n_fft == 4096);
      };
      const Errors e = errors_of(o, reference::click_rows(o), rows(o), rows(in_db(o)));
      CHECK(e.of_peak <= 1e-6);
    }
  }
}

TEST_CASE("conditioning on the host: frames are those of the processor, in any order of lanes") {
  std::vector<std::int16_t> samples = recording(3000);
  for (std::int16_t& s : samples) s = static_cast<std::int16_t>(s / 4 + 20000);  // mostly an offset
  int tested = 0;
  for (const int n_fft : {400, 512, 1103}) {
    for (const Named& set : front_ends(n_fft)) {
      for (const bool over_ends : {false, true}) {
        O o = set.options;
        if (over_ends) o.snip_edges = false;
        if (!check(o).empty()) continue;
        const MelPlan plan(o);
        if (!is_conditioned_by_frame(plan)) continue;
        CAPTURE(n_fft);
        CAPTURE(set.name);
        ++tested;
        const Batch batch = make_batch(plan, samples);
        const ConditionSettings s = *kernel_front_end(plan).condition;
        const auto n = static_cast<std::int64_t>(samples.size());
        const SignalView<std::int16_t> view{samples.data(), 0, n, n};
        const Conditioner conditioner(plan);
        const auto length = static_cast<std::size_t>(plan.frame_length());
        std::vector<float> work(length), expected(length);
        for (const SampleType kind : {SampleType::int16, SampleType::float32}) {
          SampleType type = kind, again = kind;
          const Batch up = conditioned(plan, batch, type);
          CHECK(type == SampleType::float32);
          const Batch down = conditioned(plan, batch, again, LaneOrder::down);
          for (std::size_t t = 0; t < up.n_frames(); ++t) {
            CHECK(up.offsets[t] % 2 == 0);
            const float* frame = up.float32.data() + up.offsets[t];
            conditioner.frame(view, plan.start(static_cast<std::int64_t>(t)), work.data(),
                              expected.data());
            const float peak = std::abs(
                *std::max_element(expected.begin() + s.begin, expected.begin() + s.end,
                                  [](float a, float b) { return std::abs(a) < std::abs(b); }));
            int wrong = 0;
            for (int i = s.begin; i < s.end; ++i)
              if (!(std::abs(frame[i] - expected[static_cast<std::size_t>(i)]) <= 1e-6F * peak))
                ++wrong;
            CHECK(wrong == 0);
            CHECK(std::equal(frame, frame + length, down.float32.data() + down.offsets[t]));
          }
        }
      }
    }
  }
  CHECK(tested > 5);
}

TEST_CASE("any size on the host: where bins come from and the order of lanes change nothing") {
  const std::vector<std::int16_t> samples = recording(2000);
  for (const O::Output output : {O::Output::mel, O::Output::spectrogram}) {
    MelOptions o;
    o.n_fft = 600;
    o.n_mels = 70;
    o.output = output;
    o.log = O::Log::db;
    const Batch batch = make_batch(MelPlan(o), samples);
    for (const NumberType type : {NumberType::float32, NumberType::float16, NumberType::bfloat16}) {
      const std::vector<double> rows = rows_of(o, batch, SampleType::int16, true, type);
      CHECK(rows == rows_of(o, batch, SampleType::int16, false, type));
      CHECK(rows == rows_of(o, batch, SampleType::int16, true, type, LaneOrder::down));
      CHECK(std::none_of(rows.begin(), rows.end(), [](double x) { return std::isnan(x); }));
    }
  }
}

TEST_CASE("any size on the host: both paths give the same rows") {
  const std::vector<std::int16_t> samples = recording(4096);
  MelOptions o;
  o.n_fft = 1024;
  o.n_mels = 64;
  o.log = O::Log::db;
  const MelPlan plan(o);
  const Batch batch = make_batch(plan, samples);
  const FusedTables tables(kernel_front_end(plan), NumberType::float32);
  RowBuffer rows(NumberType::float32, batch.n_frames() * 64);
  run_fused(tables, NumberType::float32,
            {batch.int16.data(), SampleType::int16, batch.offsets.data(), batch.n_frames()},
            rows.rows());
  const std::vector<double> fused = rows.values();
  const std::vector<double> other = rows_of(o, batch, SampleType::int16, true);
  for (std::size_t i = 0; i < fused.size(); ++i) CHECK(std::abs(fused[i] - other[i]) <= 1e-2);
}

}  // namespace
}  // namespace melflow::cuda
