// Checks that the emulated device detects barriers that a lane misses, accesses beside a block's
// own memory, and tables that have not arrived.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "tests/cuda_runtime/slots_on_runtime.h"
#include "tests/support/sanitized.h"

using namespace melflow;
using namespace melflow::test;

namespace {

// A kernel's argument, passed in memory.
struct Argument {
  const std::function<void()>* of_lane;
  char more[KernelLaunch::most_argument_bytes - sizeof(void*)];
};
void kernel(Argument a) { (*a.of_lane)(); }

std::string run(unsigned threads, const std::function<void()>& of_lane,
                LaneOrder order = LaneOrder::rising, std::size_t shared_bytes = 0) {
  KernelLaunch launch{reinterpret_cast<const void*>(kernel), 2, threads, shared_bytes, {}};
  const auto* const work = &of_lane;
  std::memcpy(launch.argument.data(), &work, sizeof work);
  return run_kernel(launch, order, 7);
}

bool is_odd() { return threadIdx.x % 2 == 1; }

}  // namespace

namespace melflow::cuda {
extern thread_local unsigned char shared_memory[];
}

TEST_CASE("lanes: each runs once, between barriers in its order") {
  if constexpr (kSanitized) return;  // to a sanitizer, lanes that write the same vector are a race
  for (const LaneOrder order : {LaneOrder::rising, LaneOrder::falling, LaneOrder::shuffled}) {
    std::vector<unsigned> before, behind;
    CHECK(run(
              64,
              [&] {
                before.push_back(threadIdx.x + 64 * blockIdx.x);
                __syncthreads();
                behind.push_back(threadIdx.x);
              },
              order) == "");
    REQUIRE(before.size() == 128);
    CHECK(std::is_sorted(before.begin(), before.end()) == (order == LaneOrder::rising));
    CHECK(std::is_sorted(before.rbegin(), before.rend()) == (order == LaneOrder::falling));
    CHECK(std::set(before.begin(), before.end()).size() == 128);
    CHECK(behind.size() == 128);
  }
}

TEST_CASE("lanes: barriers that not all reach, or not the same ones, are found") {
  CHECK(run(32, [] {
          if (is_odd()) __syncwarp();
        }).find("a warp diverges: some of its lanes have ended, others wait at __syncwarp()") == 0);
  CHECK(run(32, [] {
          if (is_odd()) return __syncwarp();
          __syncthreads();
        }).find("a warp diverges: some of its lanes wait at __syncthreads()") == 0);
  CHECK(run(32, [] {
          if (is_odd()) return __syncwarp();
          __syncwarp();
        }).find("a warp diverges: some of its lanes wait at __syncwarp() in line") == 0);
  CHECK(run(64, [] {
          if (threadIdx.x < 32) __syncthreads();
        }).find("a block waits for ever: some of its warps wait at __syncthreads()") == 0);
  CHECK(run(33, [] {}) == "a block of 33 threads");
  // The next launch is unaffected.
  CHECK(run(64, [] { __syncthreads(); }) == "");
}

TEST_CASE("lanes: a block's shared memory is NaN at first, and fenced") {
  bool is_nan = true;
  CHECK(run(
            32,
            [&] {
              for (int i = 0; threadIdx.x == 0 && i < 64; ++i)
                is_nan = is_nan && cuda::shared_memory[i] == 0xFF;
              __syncwarp();
              cuda::shared_memory[threadIdx.x] = 1;
            },
            LaneOrder::rising, 64) == "");
  CHECK(is_nan);
  if constexpr (!kSanitized)  // a sanitizer would end the program here
    CHECK(run(
              32, [] { cuda::shared_memory[32 + threadIdx.x] = 1; }, LaneOrder::rising, 63) ==
          "a block writes behind its shared memory");
}

TEST_CASE("emulated device: what a stream has not waited for is not there") {
  RecordingRuntime runtime;
  cudaStream_t stream = nullptr, other = nullptr;
  void *memory = nullptr, *pinned = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamCreate(&other);
  cudaMalloc(&memory, 4);
  cudaHostAlloc(&pinned, 8, cudaHostAllocPortable);
  auto* const out = static_cast<std::uint32_t*>(pinned);
  const std::uint32_t value = 5;
  // A copy of pageable memory goes to stream 0, for which only some streams wait.
  cudaMemcpy(memory, &value, 4, cudaMemcpyHostToDevice);
  cudaMemcpyAsync(out, memory, 4, cudaMemcpyDeviceToHost, stream);
  cudaMemcpyAsync(out + 1, memory, 4, cudaMemcpyDeviceToHost, other);
  cudaStreamSynchronize(stream);
  CHECK(out[0] == 0xFFFFFFFF);
  cudaStreamSynchronize(other);
  CHECK(out[1] == 5);
  CHECK(runtime.complaints().find("changed") == std::string::npos);
  // Memory to be copied must not change before the copy.
  out[0] = 1;
  cudaMemcpyAsync(memory, out, 4, cudaMemcpyHostToDevice, stream);
  out[0] = 2;
  cudaStreamSynchronize(stream);
  CHECK(runtime.complaints().find("pinned memory changed before it was copied") == 0);
  if constexpr (!kSanitized) {
    static_cast<char*>(memory)[4] = 0;
    cudaFree(memory);
    CHECK(runtime.complaints().find("written beside memory of 4 bytes") != std::string::npos);
  } else {
    cudaFree(memory);
  }
  cudaFreeHost(pinned);
  cudaStreamDestroy(stream);
  cudaStreamDestroy(other);
}
