// Rows of special cases on a device: clicks, the ends of frames, silence, conditioned frames.

#include <cmath>
#include <limits>
#include <stdexcept>

#include "cuda/fused_shape.h"
#include "cuda/mel_tables.h"
#include "stages/features/mel/mel_signal.h"
#include "tests/device/device_rows.h"

namespace melflow::cuda::kernel_rows_test {
namespace {

using O = MelOptions;
using namespace testing;

TEST_CASE("device: a click at any place of a frame, in bands of many bins") {
  MELFLOW_NEEDS_DEVICE("a click at any place of a frame, in bands of many bins");
  struct Row {
    Path path;
    int n_fft, hop;
  };
  // The bins of 32768 samples do not fit into shared memory.
  std::vector<Row> rows = {
      {Path::cufft, 1103, 1}, {Path::cufft, 4096, 7}, {Path::cufft, 32768, 2003}};
  for (const int n_fft : fused_sizes) rows.push_back({Path::fused, n_fft, 1});
  for (const Row& row : rows) {
    for (const int n_mels : {1, 13}) {
      CAPTURE(row.n_fft);
      CAPTURE(n_mels);
      O o = of_clicks(row.n_fft, n_mels);
      o.hop = row.hop;
      const Batch batch = make_batch(MelPlan(o), reference::click(row.n_fft));
      const auto rows_by = [&](const O& options) {
        return rows_of(options, batch, SampleType::int16, {row.path, {}, {}});
      };
      const Errors e = errors_of(o, reference::click_rows(o), rows_by(o), rows_by(in_db(o)));
      CHECK(e.of_peak <= (row.path == Path::fused ? fused_limits : cufft_limits).of_peak);
    }
  }
}

TEST_CASE("device: fp16 operands hold samples at full scale") {
  MELFLOW_NEEDS_DEVICE("fp16 operands hold samples at full scale");
  // The largest possible value of a transform: all of a frame's energy in one bin.
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
        const std::vector<double> row =
            rows_of(o, batch, SampleType::int16, {Path::fused, NumberType::float16, {}});
        const double peak = std::pow(n_fft * input_scale, 2);
        CHECK(row[alternating ? static_cast<std::size_t>(n_fft / 2) : 0] ==
              doctest::Approx(peak).epsilon(2e-3));
        for (const double value : row) CHECK(value <= peak * 1.002);
      }
    }
  }
}

TEST_CASE("device: every log, with its offset, floor and reference") {
  MELFLOW_NEEDS_DEVICE("every log, with its offset, floor and reference");
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
        const std::vector<double> rows = rows_of(o, batch, SampleType::int16, {});
        if (o.log == O::Log::none) {
          const Errors e =
              errors_of(o, expected, rows, rows_of(in_db(o), batch, SampleType::int16, {}));
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

TEST_CASE("device: the column of the energy is left as it was, in rows of every type") {
  MELFLOW_NEEDS_DEVICE("the column of the energy is left as it was");
  for (const NumberType type : {NumberType::float32, NumberType::float16, NumberType::bfloat16}) {
    O o;
    o.n_mels = 33;
    o.use_energy = true;
    o.raw_energy = false;
    const std::vector<double> rows =
        rows_of(o, make_batch(MelPlan(o), recording(3001)), SampleType::int16, {{}, {}, type});
    for (std::size_t i = 0; i < rows.size(); ++i) CHECK(std::isnan(rows[i]) == (i % 34 == 0));
  }
}

TEST_CASE("device: a row is that of its frame, wherever and beside whatever") {
  MELFLOW_NEEDS_DEVICE("a row is that of its frame, wherever and beside whatever");
  const std::vector<std::int16_t> samples = recording(3000);
  for (const int n_fft : {256, 400, 512, 600, 1024, 2048}) {
    CAPTURE(n_fft);
    O o;
    o.n_fft = n_fft;
    o.hop = 93;  // every second frame begins at an odd sample
    o.n_mels = 20;
    o.center = false;
    const Batch batch = make_batch(MelPlan(o), samples);
    const std::vector<double> all = rows_of(o, batch, SampleType::int16, {});
    for (std::size_t t = 0; t < batch.n_frames(); t += n_fft == 600 ? 5 : 1) {
      Batch alone = batch;
      alone.offsets = {batch.offsets[t]};
      const std::vector<double> row = rows_of(o, alone, SampleType::int16, {});
      CHECK(std::equal(row.begin(), row.end(), all.begin() + static_cast<std::ptrdiff_t>(t * 20)));
    }
  }
}

TEST_CASE("device: no sample outside the frame is read") {
  MELFLOW_NEEDS_DEVICE("no sample outside the frame is read");
  for (const int n_fft : {256, 400, 512, 600, 1024, 2048}) {
    for (const int length : {n_fft, n_fft - 1, n_fft / 2 + 1, 1}) {
      CAPTURE(n_fft);
      CAPTURE(length);
      O o;
      o.n_fft = n_fft;
      o.win_length = length;
      o.align = O::Align::left;
      o.center = false;
      o.hop = n_fft;
      o.window = O::Window::boxcar;
      o.output = O::Output::spectrogram;
      for (const std::size_t begin : {std::size_t{0}, std::size_t{1}}) {
        // NaN before the frame, and no memory after it, so that a sanitizer detects reads there.
        Batch batch;
        batch.float32.assign(begin, std::numeric_limits<float>::quiet_NaN());
        for (int i = 0; i < length; ++i) batch.float32.push_back(std::sin(static_cast<float>(i)));
        batch.offsets = {static_cast<std::uint32_t>(begin)};
        for (const double value : rows_of(o, batch, SampleType::float32, {}))
          CHECK(std::isfinite(value));
      }
    }
  }
}

TEST_CASE("device: silence is the floor, NaN and infinity are not hidden") {
  MELFLOW_NEEDS_DEVICE("silence is the floor, NaN and infinity are not hidden");
  for (const int n_fft : {256, 400, 512, 600, 1024, 2048}) {
    CAPTURE(n_fft);
    O o;
    o.n_fft = n_fft;
    o.n_mels = 10;
    o.center = false;
    o.log = O::Log::db;
    Batch batch;
    batch.float32.assign(static_cast<std::size_t>(n_fft), 0.0F);
    batch.offsets = {0};
    const auto rows = [&] { return rows_of(o, batch, SampleType::float32, {}); };
    for (const double value : rows()) CHECK(value == doctest::Approx(-100.0));
    for (const float odd :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      batch.float32[static_cast<std::size_t>(n_fft / 3)] = odd;
      for (const double value : rows()) CHECK_FALSE(std::isfinite(value));
    }
  }
}

TEST_CASE("device: both paths give the same rows") {
  MELFLOW_NEEDS_DEVICE("both paths give the same rows");
  O o;
  o.n_fft = 1024;
  o.n_mels = 64;
  o.log = O::Log::db;
  const Batch batch = make_batch(MelPlan(o), recording(4096));
  const std::vector<double> fused = rows_of(o, batch, SampleType::int16, {Path::fused, {}, {}});
  const std::vector<double> other = rows_of(o, batch, SampleType::int16, {Path::cufft, {}, {}});
  for (std::size_t i = 0; i < fused.size(); ++i) CHECK(std::abs(fused[i] - other[i]) <= 1e-2);
}

TEST_CASE("device: conditioned frames are those of the processor") {
  MELFLOW_NEEDS_DEVICE("conditioned frames are those of the processor");
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
        O without = o;
        without.preemphasis = 0.0;
        const MelPlan plan_without(without);
        const Conditioner before(plan_without);
        const auto length = static_cast<std::size_t>(plan.frame_length());
        std::vector<float> work(length), expected(length), raw(length);
        for (const SampleType type : {SampleType::int16, SampleType::float32}) {
          const Stream stream;
          Job job(plan, batch, type, {});
          job.set_count(batch.n_frames());
          job.enqueue(stream.handle);
          (void)job.rows();
          // The work area begins with the conditioned frames.
          std::vector<float> frames(job.kernels().work_bytes() / sizeof(float));
          job.work().read(frames.data());
          for (std::size_t t = 0; t < batch.n_frames(); ++t) {
            const float* frame = frames.data() + t * static_cast<std::size_t>(s.stride);
            conditioner.frame(view, plan.start(static_cast<std::int64_t>(t)), work.data(),
                              expected.data());
            const auto peak_of = [&s](const std::vector<float>& values) {
              float peak = 0.0F;
              for (int i = s.begin; i < s.end; ++i)
                peak = std::max(peak, std::abs(values[static_cast<std::size_t>(i)]));
              return peak;
            };
            // A device rounds once per multiply-add, so the result of pre-emphasis differs by half
            // a bit of the subtracted value.
            before.frame(view, plan.start(static_cast<std::int64_t>(t)), work.data(), raw.data());
            const float most = 1e-6F * peak_of(expected) + 0x1p-24F * peak_of(raw);
            int wrong = 0;
            for (int i = s.begin; i < s.end; ++i)
              if (!(std::abs(frame[i] - expected[static_cast<std::size_t>(i)]) <= most)) ++wrong;
            CHECK(wrong == 0);
          }
        }
      }
    }
  }
  CHECK(tested > 5);
}

TEST_CASE("fused tables: another size is refused") {
  MelOptions o;
  o.n_fft = 480;
  CHECK_THROWS_WITH_AS(FusedTables(kernel_front_end(MelPlan(o)), NumberType::float32),
                       "n_fft is 480, the fused kernel has 256, 400, 512, 1024 and 2048",
                       std::invalid_argument);
}

}  // namespace
}  // namespace melflow::cuda::kernel_rows_test
