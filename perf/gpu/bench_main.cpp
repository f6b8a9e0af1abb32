// Runs melflow_gpu_bench on the devices of this machine.

#include "bench.h"

int main(int argc, char** argv) { return melflow::bench::run(argc, argv); }
