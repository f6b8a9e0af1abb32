// Records the launch that mel_kernels.cu makes for the settings of the two-stage job, for sass.py
// to execute: a CUDA runtime without a device writes it down.
//
// In:  SIZE OPERANDS int16|float32, with OPERANDS a number of NumberType.
// Out: on stdout, a line per field: threads and shared bytes of a block, windows, argument, each
//      device buffer, the places of count and rows in it, and the rows of a transform in double.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "cuda/any_size_kernels.cuh"
#include "cuda/condition_kernel.cuh"
#include "cuda/fused_launch.cuh"
#include "cuda/mel_kernels.h"
#include "stages/device/kernel_front_end.h"
#include "stages/features/mel/mel_plan.h"

using namespace melflow;

namespace {

std::map<void*, std::size_t> memory;

void print(const char* key, const void* data, std::size_t bytes) {
  std::printf("%s ", key);
  for (std::size_t i = 0; i < bytes; ++i)
    std::printf("%02x", static_cast<const unsigned char*>(data)[i]);
  std::puts("");
}

template <class T>
T* upload(const std::vector<T>& values) {
  void* to = nullptr;
  cudaMalloc(&to, values.size() * sizeof(T));
  std::memcpy(to, values.data(), values.size() * sizeof(T));
  return static_cast<T*>(to);
}

std::vector<float> rows_in_double(const cuda::FrontEnd& front, const std::vector<float>& samples,
                                  const std::vector<std::uint32_t>& offsets) {
  const auto n = static_cast<std::size_t>(front.settings.n_fft);
  std::vector<float> rows;
  for (const std::uint32_t offset : offsets) {
    std::vector<double> power;
    for (std::size_t k = 0; k <= n / 2; ++k) {
      double re = 0, im = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double x = static_cast<double>(samples[offset + i]) * front.window[i] / 32768;
        const double angle =
            2 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n);
        re += x * std::cos(angle);
        im -= x * std::sin(angle);
      }
      power.push_back(re * re + im * im);
    }
    for (const cuda::Band& band : front.bands) {
      double sum = 0;
      for (int i = 0; i < band.count; ++i)
        sum += power[static_cast<std::size_t>(band.first_bin + i)] *
               front.weights[static_cast<std::size_t>(band.offset + i)];
      rows.push_back(static_cast<float>(10 * std::log10(std::max(sum, 1e-10))));
    }
  }
  return rows;
}

}  // namespace

extern "C" {
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return ""; }
const char* cudaGetErrorString(cudaError_t) { return ""; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  return *value = 1, cudaSuccess;
}
cudaError_t cudaMalloc(void** to, std::size_t bytes) {
  *to = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  memory[*to] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int,
                                                          std::size_t) {
  return *blocks = 1, cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void*, dim3, dim3 threads, void** arguments, std::size_t shared,
                             cudaStream_t) {
  std::printf("threads %u\nshared %zu\n", threads.x, shared);
  print("argument", arguments[0], sizeof(cuda::FusedArguments));
  return cudaSuccess;
}
}

namespace melflow::cuda {
void launch_window(cudaStream_t, SampleType, const WindowArguments&) {}
void launch_levels(cudaStream_t, const LevelsLayout&, const LevelsArguments&) {}
LevelsLayout levels_layout(const AnySizeTables&) { return {}; }
void launch_condition(cudaStream_t, SampleType, const ConditionArguments&, std::uint32_t) {}
FusedKernel fused_kernel_256(SampleType, NumberType) { return nullptr; }
FusedKernel fused_kernel_400(SampleType, NumberType) { return nullptr; }
FusedKernel fused_kernel_512(SampleType, NumberType) { return nullptr; }
FusedKernel fused_kernel_1024(SampleType, NumberType) { return nullptr; }
FusedKernel fused_kernel_2048(SampleType, NumberType) { return nullptr; }
}  // namespace melflow::cuda

int main(int, char** argv) {
  MelOptions o;
  o.sample_rate = 4096;
  o.n_fft = std::atoi(argv[1]);
  o.hop = o.n_fft / 2;
  o.center = false;
  o.n_mels = 32;
  o.log = MelOptions::Log::db;
  const cuda::FrontEnd front = kernel_front_end(MelPlan(o));
  const bool is_int16 = std::string(argv[3]) == "int16";

  // Three frames per warp of one block; six where each half of a warp has its own frame.
  const std::uint32_t windows = 3 * cuda::fused_warps * (o.n_fft == 256 ? 2 : 1);
  const auto hop = static_cast<std::uint32_t>(*o.hop);
  std::vector<std::uint32_t> offsets;
  for (std::uint32_t i = 0; i < windows; ++i) offsets.push_back(i * hop);
  std::vector<float> samples;  // noise, at the scale of int16
  std::uint64_t state = 42;
  for (std::uint32_t i = 0; i < (windows + 1) * hop; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    samples.push_back(static_cast<float>(static_cast<int>(state >> 50) - 8192));
  }
  std::vector<float> scaled(samples);
  for (float& s : scaled) s /= 32768;

  cuda::MelKernels kernels(
      front, {cuda::Path::fused, static_cast<NumberType>(std::atoi(argv[2])), {}}, windows);
  cuda::MelKernels::Launch launch;
  launch.sample_type = is_int16 ? cuda::SampleType::int16 : cuda::SampleType::float32;
  launch.samples =
      is_int16
          ? static_cast<void*>(upload(std::vector<std::int16_t>(samples.begin(), samples.end())))
          : static_cast<void*>(upload(scaled));
  launch.offsets = upload(offsets);
  launch.n_frames = upload(std::vector<std::uint32_t>{windows});
  launch.capacity = windows;
  launch.rows = upload(std::vector<float>(windows * 32));
  kernels.launch(nullptr, launch);

  std::printf("windows %u\ncount_at %zu\nrows_at %zu\n", windows,
              reinterpret_cast<std::size_t>(launch.n_frames),
              reinterpret_cast<std::size_t>(launch.rows));
  for (const auto& [data, bytes] : memory)
    print(("memory " + std::to_string(reinterpret_cast<std::size_t>(data))).c_str(), data, bytes);
  const std::vector<float> expected = rows_in_double(front, samples, offsets);
  print("expected", expected.data(), expected.size() * sizeof(float));
}
