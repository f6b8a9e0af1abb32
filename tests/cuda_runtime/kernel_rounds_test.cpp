// Every frame is computed once, by no more blocks than necessary: checked by the barriers and reads
// of all lanes, whose number per frame is constant. Rows would not show it, since computing one
// twice gives the same result.
#include <doctest/doctest.h>

#include "cuda/mel_kernels.h"
#include "tests/cuda_runtime/slots_on_runtime.h"

using namespace melflow;
using namespace melflow::cuda;
using namespace melflow::test;

namespace {

constexpr std::uint32_t kCapacity = 100;

// Counts the work of a launch with room for kCapacity frames, of which `frames` exist.
LaneCounts counts_of(const FrontEnd& front_end, Path path, std::uint32_t frames) {
  RecordingRuntime runtime;
  const LaneCounts before = lane_counts();
  LaneCounts behind;
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
    behind = lane_counts();
    cudaStreamDestroy(stream);
    for (void* memory : {in, rows, work}) cudaFree(memory);
  }
  CHECK(runtime.complaints() == "");
  return {behind.blocks - before.blocks, behind.waits - before.waits, behind.reads - before.reads};
}

}  // namespace

TEST_CASE("kernels: every frame is worked on once, however many there are") {
  FrontEnd plain = *front_end_of_columns();
  plain.condition.reset();
  plain.settings.n_fft = 512;  // one frame per warp
  plain.settings.n_bins = 257;
  FrontEnd conditioned = *front_end_of_columns();
  conditioned.settings = plain.settings;
  conditioned.condition->remove_dc = true;
  for (const FrontEnd* front_end : {&plain, &conditioned}) {
    for (const Path path : {Path::fused, Path::cufft}) {
      CAPTURE(front_end == &plain);
      CAPTURE(path == Path::fused);
      const LaneCounts none = counts_of(*front_end, path, 0), one = counts_of(*front_end, path, 1);
      CHECK(one.waits > none.waits);
      CHECK(one.reads > none.reads);
      for (const std::uint32_t frames : {2U, 8U, 33U, kCapacity}) {
        const LaneCounts all = counts_of(*front_end, path, frames);
        CHECK(all.waits == none.waits + frames * (one.waits - none.waits));
        CHECK(all.reads == none.reads + frames * (one.reads - none.reads));
        // Eight frames per block; the fused kernel has as many blocks as fit: 2 on each of 3.
        const unsigned of_path = path == Path::fused ? 6 : 13 + 13;
        CHECK(all.blocks == of_path + (front_end == &plain ? 0 : 13));
      }
    }
  }
}
