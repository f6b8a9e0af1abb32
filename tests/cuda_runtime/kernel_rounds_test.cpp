// Every frame is worked on once: by the barriers that lanes wait at, which are the same for each frame.
// Rows would not show it, for what is computed twice is the same.
#include <doctest/doctest.h>

#include <cstring>

#include "cuda/mel_kernels.h"
#include "tests/cuda_runtime/slots_on_runtime.h"

using namespace melflow;
using namespace melflow::cuda;
using namespace melflow::test;

namespace {

constexpr std::uint32_t kCapacity = 100;

// Of a launch for kCapacity frames, of which there are that many.
std::uint64_t barriers_of(const FrontEnd& front_end, Path path, std::uint32_t frames) {
  RecordingRuntime runtime;
  std::uint64_t waited = barriers_waited_at();
  {
    MelKernels kernels(front_end, {path, {}, {}}, kCapacity);
    void *in = nullptr, *rows = nullptr, *work = nullptr;
    const std::size_t words = 1 + kCapacity;
    cudaMalloc(&in, 4 * words + 16 * kCapacity);
    cudaMalloc(&rows, kCapacity * kColumns * sizeof(float));
    cudaMalloc(&work, kernels.work_bytes());
    cudaMemset(in, 0, 4 * words + 16 * kCapacity);
    cudaMemcpy(in, &frames, sizeof frames, cudaMemcpyHostToDevice);
    MelKernels::Launch launch;
    launch.n_frames = static_cast<const std::uint32_t*>(in);
    launch.offsets = launch.n_frames + 1;
    launch.samples = launch.n_frames + words;
    launch.sample_type = SampleType::int16;
    launch.capacity = kCapacity;
    launch.rows = rows;
    launch.work = work;
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    kernels.launch(stream, launch);
    cudaDeviceSynchronize();
    waited = barriers_waited_at() - waited;
    cudaStreamDestroy(stream);
    for (void* memory : {in, rows, work}) cudaFree(memory);
  }
  CHECK(runtime.complaints() == "");
  return waited;
}

}  // namespace

TEST_CASE("kernels: every frame is worked on once, however many there are") {
  FrontEnd plain = *front_end_of_columns();
  plain.condition.reset();
  plain.settings.n_fft = 512;  // a frame a warp
  plain.settings.n_bins = 257;
  FrontEnd conditioned = *front_end_of_columns();
  conditioned.settings = plain.settings;
  conditioned.condition->remove_dc = true;
  for (const FrontEnd* front_end : {&plain, &conditioned}) {
    for (const Path path : {Path::fused, Path::cufft}) {
      CAPTURE(front_end == &plain);
      CAPTURE(path == Path::fused);
      const std::uint64_t none = barriers_of(*front_end, path, 0);
      const std::uint64_t of_one = barriers_of(*front_end, path, 1) - none;
      CHECK(of_one > 0);
      for (const std::uint32_t frames : {2U, 8U, 33U, kCapacity})
        CHECK(barriers_of(*front_end, path, frames) == none + frames * of_one);
    }
  }
}
