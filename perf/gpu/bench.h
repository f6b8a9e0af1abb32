// bench.h - the parts of melflow_gpu_bench. All but device.cpp access a device as stages do
// (cuda/gpu.h), so that they can be tested on the emulated device.
//
// In:  a device; the amount of work.
// Out: figures, each as soon as it is known. Rates are in bytes, files or windows per second, times
//      in seconds.

#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cuda/gpu.h"
#include "stages/features/mel/mel_options.h"

namespace melflow::bench {

using Json = nlohmann::ordered_json;

// Writes figures: Markdown tables to stdout, and a line of JSON for each to a file.
class Report {
 public:
  // Lines are added to the file; "": to none. Throws std::runtime_error where it cannot be written.
  explicit Report(const std::string& path);
  // text() and figures() flush their output, so an interruption loses only what was not measured
  // yet.
  void text(const std::string& markdown) const;
  // `kind`: what the figures describe: "link", "kernel", "slots".
  void figures(const char* kind, const Json& figures);

 private:
  std::string path_;
  std::ofstream file_;
};
std::string with_commas(double value);  // 1,234,567

struct Effort {
  int repetitions = 40;                 // of which the median is reported
  std::size_t set_bytes = 64U << 20;    // of samples: one input set of a kernel
  std::size_t sets_over_cache = 4;      // all sets together, in multiples of the L2 cache
  std::size_t copy_bytes = 64U << 20;   // of a large copy
  std::size_t copied_bytes = 1U << 30;  // by one repetition of a copy
  std::size_t batch_bytes = 16U << 20;  // of samples: a batch through a slot
  std::size_t small_batch_bytes = 1U << 20;
  std::size_t batches = 64;  // per repetition through slots
  std::vector<int> slots = {1, 2, 3, 4, 6, 8, 12};

  static Effort quick();
};

// The manufacturer's data of a device, and the largest rate of a copy inside its memory, counting
// bytes read and written. device.cpp has the version for CUDA; a test has another.
struct DeviceFacts {
  std::size_t l2_bytes = 0;
  Json properties;
};
DeviceFacts device_facts(int index);
double device_copy_rate(cuda::Gpu& gpu, const Effort& effort);

// The measured limits to which other rates are compared [bytes/s].
struct Ceilings {
  double to_device = 0, from_device = 0, both_ways = 0, memory = 0;
};

// A front end and the files that it processes.
struct Geometry {
  std::string name;
  MelOptions options;
  std::int64_t samples = 0;       // of a file
  std::int64_t rows_of_file = 0;  // in an output; windows at the same position are computed once
};
std::vector<Geometry> geometries();

// Files packed one after another as by stages: the samples, and the position of every window.
struct Pack {
  Pack(const Geometry& geometry, std::size_t most_bytes);
  std::size_t files = 0;
  std::vector<std::int16_t> samples;
  std::vector<std::uint32_t> offsets;
  [[nodiscard]] std::size_t sample_bytes() const { return samples.size() * sizeof(std::int16_t); }
  [[nodiscard]] std::uint32_t frames() const { return static_cast<std::uint32_t>(offsets.size()); }
};

// Device memory, or page-locked memory of the host.
class Memory {
 public:
  enum class Kind { device, pinned };
  // Throws cuda::CudaError where there is not enough memory.
  Memory(cuda::Gpu& gpu, Kind kind, std::size_t bytes);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();
  [[nodiscard]] void* data() const { return data_; }

 private:
  cuda::Gpu& gpu_;
  Kind kind_;
  void* data_ = nullptr;
};

double median(std::vector<double> values);

// Measures copies between page-locked and device memory: one way by size, and both ways at once.
void measure_links(cuda::Gpu& gpu, const Effort& effort, Ceilings& ceilings, Report& report);
// Measures the kernels of a geometry on data in device memory, for every path and operand type.
void measure_kernels(cuda::Gpu& gpu, const Geometry& geometry, std::size_t l2_bytes,
                     const Effort& effort, const Ceilings& ceilings, Report& report);
// Launches each fused kernel of a geometry once, for a profiler, and reports the number of windows.
void launch_kernels(cuda::Gpu& gpu, const Geometry& geometry, const Effort& effort,
                    const Report& report);
// Measures the way from host memory through a device and back, by cuda::SlotPool with one or more
// slots, with recordings and without, and with small batches.
void measure_slots(cuda::Gpus& gpus, int index, const Geometry& geometry, const Effort& effort,
                   const Ceilings& ceilings, Report& report);

// Returns the decisions that follow from the lines of a GPU check, as a Markdown table. Missing
// lines leave questions open. Throws std::runtime_error where the file cannot be read.
std::string decisions(const std::string& path);

// Runs the program on the devices of cuda::gpus().
int run(int argc, char** argv);

}  // namespace melflow::bench
