// Compares MelKernels on a device with the definition in double precision. Without a device every
// test reports that and is skipped.

#include <cmath>
#include <limits>
#include <stdexcept>
#include <tuple>

#include "cuda/fused_shape.h"
#include "stages/features/mel/mel_signal.h"
#include "tests/device/device_rows.h"

namespace melflow::cuda::mel_kernels_test {
namespace {

using O = MelOptions;
using namespace testing;

// Checks one of every `every` front ends.
void check_front_ends(const std::vector<int>& sizes, const KernelOptions& options, Errors limit,
                      std::size_t every = 1) {
  const std::vector<std::int16_t> samples = recording(3001);
  Errors worst;
  std::size_t number = 0;
  for (const int n_fft : sizes) {
    for (const Named& set : front_ends(n_fft)) {
      if (++number % every != 0) continue;
      CAPTURE(n_fft);
      CAPTURE(set.name);
      const MelOptions o = linear(set.options);
      const reference::Rows expected = reference::mel(o, exact(samples));
      const Batch batch = make_batch(MelPlan(o), samples);
      std::vector<double> levels;
      for (const SampleType type : {SampleType::float32, SampleType::int16}) {
        if (type == SampleType::int16 && batch.int16.empty()) continue;  // conditioned
        // After cuFFT nothing depends on the samples' type.
        if (levels.empty() || options.path == Path::fused)
          levels = rows_of(in_db(o), batch, type, options);
        const Errors e = errors_of(o, expected, rows_of(o, batch, type, options), levels);
        CHECK(e.of_peak <= limit.of_peak);
        CHECK(e.db <= limit.db);
        widen(worst, e);
      }
    }
  }
  MESSAGE("at most " << worst.of_peak << " of the peak, " << worst.db << " dB");
}

const std::vector<int> sizes_of_fused(std::begin(fused_sizes), std::end(fused_sizes));

TEST_CASE("device: fused rows agree with the definition") {
  MELFLOW_NEEDS_DEVICE("fused rows agree with the definition");
  check_front_ends(sizes_of_fused, {Path::fused, {}, {}}, fused_limits);
}

TEST_CASE("device: fused rows with operands of 16 bits stay within their limits") {
  MELFLOW_NEEDS_DEVICE("fused rows with operands of 16 bits stay within their limits");
  check_front_ends(sizes_of_fused, {Path::fused, NumberType::float16, {}}, fp16_operand_limits);
  check_front_ends(sizes_of_fused, {Path::fused, NumberType::bfloat16, {}}, bf16_operand_limits);
}

TEST_CASE("device: rows by cuFFT agree with the definition") {
  MELFLOW_NEEDS_DEVICE("rows by cuFFT agree with the definition");
  check_front_ends({401, 1000}, {Path::cufft, {}, {}}, cufft_limits);
  check_front_ends({400, 512, 1103}, {Path::cufft, {}, {}}, cufft_limits, 3);
}

TEST_CASE("device: rows of every type are the fp32 rows, rounded once") {
  MELFLOW_NEEDS_DEVICE("rows of every type are the fp32 rows, rounded once");
  const std::vector<std::int16_t> samples = recording(3001);
  for (const Path path : {Path::fused, Path::cufft}) {
    MelOptions o;
    o.n_fft = 512;
    o.n_mels = 33;
    o.log = O::Log::ln;
    const Batch batch = make_batch(MelPlan(o), samples);
    const std::vector<double> whole = rows_of(o, batch, SampleType::int16, {path, {}, {}});
    for (const NumberType type : {NumberType::float16, NumberType::bfloat16}) {
      const std::vector<double> rounded = rows_of(o, batch, SampleType::int16, {path, {}, type});
      const double step = type == NumberType::float16 ? 0x1p-11 : 0x1p-8;
      for (std::size_t i = 0; i < whole.size(); ++i)
        CHECK(std::abs(rounded[i] - whole[i]) <= step * std::abs(whole[i]));
    }
  }
}

TEST_CASE("device: rows of 16 bits are the bytes that the host makes of fp32 rows") {
  MELFLOW_NEEDS_DEVICE("rows of 16 bits are the bytes that the host makes of fp32 rows");
  const std::vector<std::int16_t> samples = recording(3001);
  for (const Path path : {Path::fused, Path::cufft}) {
    for (const NumberType type : {NumberType::float16, NumberType::bfloat16}) {
      for (const bool is_log : {true, false}) {
        MelOptions o;
        o.n_fft = 512;
        o.n_mels = 33;
        o.input_scale = 4096;  // powers beyond 65504
        o.log = is_log ? O::Log::db : O::Log::none;
        Batch batch = make_batch(MelPlan(o), samples);
        batch.float32[700] = std::numeric_limits<float>::quiet_NaN();
        batch.float32[1500] = -std::numeric_limits<float>::infinity();
        const Stream stream;
        std::vector<float> whole;
        std::vector<std::uint16_t> rounded;
        for (const NumberType rows : {NumberType::float32, type}) {
          Job job(MelPlan(o), batch, SampleType::float32, {path, {}, rows});
          job.set_count(batch.n_frames());
          job.enqueue(stream.handle);
          if (rows == type)
            rounded = job.rows().halves();
          else
            for (const double value : job.values()) whole.push_back(static_cast<float>(value));
        }
        std::vector<std::uint16_t> expected(whole.size());
        from_float(whole, type, expected.data());
        CHECK(rounded == expected);
        // A logarithm follows a floor, which removes NaN.
        if (!is_log)
          CHECK(std::any_of(whole.begin(), whole.end(), [](float x) { return std::isnan(x); }));
      }
    }
  }
}

TEST_CASE("device: a captured graph is launched again with fewer frames") {
  MELFLOW_NEEDS_DEVICE("a captured graph is launched again with fewer frames");
  // For a large prime cuFFT has special kernels that take two frames at a time: the last bits of a
  // frame depend on its neighbour. With 8192 samples a chunk has 384 frames, so that one frame has
  // no neighbour in the end.
  for (const auto& [path, n_fft, length, most_db] : {std::tuple{Path::fused, 256, 9000, 0.0},
                                                     {Path::cufft, 1000, 9000, 0.0},
                                                     {Path::cufft, 1103, 9000, cufft_limits.db},
                                                     {Path::cufft, 8192, 41000, 0.0}}) {
    CAPTURE(n_fft);
    const std::vector<std::int16_t> samples = recording(length);
    MelOptions o;
    o.n_fft = n_fft;
    o.hop = 100;
    o.n_mels = 20;
    o.log = O::Log::db;
    const Batch batch = make_batch(MelPlan(o), samples);
    const std::size_t n = batch.n_frames();
    const Stream stream;
    Job job(MelPlan(o), batch, SampleType::int16, {path, {}, {}});
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    check_call(cudaStreamBeginCapture(stream.handle, cudaStreamCaptureModeThreadLocal));
    job.enqueue(stream.handle);
    check_call(cudaStreamEndCapture(stream.handle, &graph));
    check_call(cudaGraphInstantiate(&executable, graph, 0));
    std::vector<double> all;
    for (const std::size_t count : {n, n / 2, std::size_t{1}, std::size_t{0}, n}) {
      CAPTURE(count);
      job.set_count(count);
      check_call(cudaGraphLaunch(executable, stream.handle));
      const std::vector<double> rows = job.values();
      if (all.empty()) all = rows;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i < count * 20)
          CHECK(std::abs(rows[i] - all[i]) <= most_db);
        else
          CHECK(std::isnan(rows[i]));  // not written
      }
    }
    check_call(cudaGraphExecDestroy(executable));
    check_call(cudaGraphDestroy(graph));
  }
}

TEST_CASE("device: many frames, more than are worked on at a time and than a chunk has") {
  MELFLOW_NEEDS_DEVICE("many frames");
  // With n_fft 100 a warp of the kernels around cuFFT takes more than one frame of a chunk, and
  // with 10,001 frames so does a warp of the conditioning kernel.
  using Output = MelOptions::Output;
  for (const auto& [path, n_fft, output, conditions, count] :
       {std::tuple{Path::fused, 400, Output::mel, false, 50001},
        {Path::fused, 512, Output::spectrogram, false, 5001},
        {Path::cufft, 400, Output::mel, false, 50001},
        {Path::cufft, 100, Output::mel, false, 50001},
        {Path::fused, 256, Output::mel, true, 10001}}) {
    CAPTURE(n_fft);
    MelOptions o;
    o.output = output;
    o.n_fft = n_fft;
    o.n_mels = 80;
    o.center = !conditions;
    o.remove_dc = conditions;
    CHECK(is_conditioned_by_frame(MelPlan(o)) == conditions);
    const std::vector<std::int16_t> samples = recording(4000);
    Batch batch = make_batch(MelPlan(o), samples);
    const std::size_t n = batch.n_frames();
    const std::vector<double> few = rows_of(o, batch, SampleType::int16, {path, {}, {}});
    for (std::size_t i = n; i < static_cast<std::size_t>(count); ++i)
      batch.offsets.push_back(batch.offsets[i % n]);
    const std::vector<double> many = rows_of(o, batch, SampleType::int16, {path, {}, {}});
    const auto columns = static_cast<std::size_t>(MelPlan(o).columns());
    bool same = true;
    for (std::size_t i = 0; i < many.size(); ++i)
      same = same && many[i] == few[i / columns % n * columns + i % columns];
    CHECK(same);
  }
}

TEST_CASE("device: what cannot be launched is refused") {
  MELFLOW_NEEDS_DEVICE("what cannot be launched is refused");
  MelOptions o;
  o.n_fft = 480;
  const MelPlan plan(o);
  CHECK_FALSE(has_fused_kernel(kernel_front_end(plan)));
  CHECK_THROWS_AS(MelKernels(kernel_front_end(plan), {Path::fused, {}, {}}, 10),
                  std::invalid_argument);
  CHECK_THROWS_AS(MelKernels(kernel_front_end(plan), {Path::cufft, NumberType::float16, {}}, 10),
                  std::invalid_argument);
  CHECK_THROWS_AS(MelKernels(kernel_front_end(plan), {}, 0), std::invalid_argument);
  MelKernels kernels(kernel_front_end(plan), {}, 10);
  CHECK(kernels.path() == Path::cufft);
  CHECK(kernels.description().starts_with("cuFFT 1"));
  MelKernels::Launch launch;
  launch.capacity = 11;
  CHECK_THROWS_WITH_AS(kernels.launch(nullptr, launch),
                       "a launch for 11 frames, at most 10 were announced", std::invalid_argument);
  launch.capacity = 10;
  CHECK_THROWS_AS(kernels.launch(nullptr, launch), std::invalid_argument);
  launch.capacity = 0;  // nothing to do, so nothing is needed
  CHECK_NOTHROW(kernels.launch(nullptr, launch));
  o.n_fft = 512;
  CHECK(
      MelKernels(kernel_front_end(MelPlan(o)), {{}, NumberType::bfloat16, {}}, 10).description() ==
      "fused, bf16 operands");
  o.remove_dc = true;
  o.center = false;
  CHECK_THROWS_WITH_AS(MelKernels(kernel_front_end(MelPlan(o)), {}, 1U << 24),
                       "a batch of more than 2^32 conditioned samples; lower mel.accumulate.bytes",
                       CudaError);
}

}  // namespace
}  // namespace melflow::cuda::mel_kernels_test
