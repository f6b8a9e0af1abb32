// melflow_on_host_gpu: the program, on the emulated device. With melflow_gpu_bench_on_host, a
// machine without a GPU can try everything that runs on one.

#include "apps/program.h"
#include "tests/emulated/host_gpus.h"

int main(int argc, char** argv) {
  melflow::test::HostGpus gpus;
  const melflow::cuda::ScopedGpus scope(gpus);
  return melflow::run_program(argc, argv);
}
