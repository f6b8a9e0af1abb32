// melflow_gpu_bench_on_host: the GPU benchmark on the emulated device. Its figures mean nothing.

#include <chrono>
#include <cstring>

#include "perf/gpu/bench.h"
#include "tests/emulated/host_gpus.h"

namespace melflow::bench {

DeviceFacts device_facts(int) { return {1U << 20, {{"l2_bytes", 1U << 20}}}; }

double device_copy_rate(cuda::Gpu& gpu, const Effort& effort) {
  const Memory from(gpu, Memory::Kind::device, effort.copy_bytes);
  const Memory to(gpu, Memory::Kind::device, effort.copy_bytes);
  const auto begin = std::chrono::steady_clock::now();
  std::memcpy(to.data(), from.data(), effort.copy_bytes);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return 2.0 * static_cast<double>(effort.copy_bytes) / seconds.count();
}

}  // namespace melflow::bench

int main(int argc, char** argv) {
  melflow::test::HostGpus gpus;
  const melflow::cuda::ScopedGpus scope(gpus);
  return melflow::bench::run(argc, argv);
}
