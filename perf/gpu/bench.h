// bench.h - the parts of melflow_gpu_bench. All but device.cpp see a device as stages do
// (cuda/gpu.h), so that they can be tried on one that is a thread of the host.
//
// In:  a device; how much to do.
// Out: figures as JSON. Rates are in bytes, files or windows a second, times in seconds.

#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cuda/gpu.h"
#include "mel/mel_options.h"

namespace melflow::bench {

using Json = nlohmann::ordered_json;

struct Effort {
  int repetitions = 40;                 // whose median counts
  std::size_t set_bytes = 64U << 20;    // of samples, one input set of a kernel
  std::size_t sets_over_cache = 4;      // all sets together, in multiples of the L2 cache
  std::size_t copy_bytes = 64U << 20;   // of a large copy
  std::size_t copied_bytes = 1U << 30;  // by one repetition of a copy
  std::size_t batch_bytes = 16U << 20;  // of samples, a batch through a lane
  std::size_t batches = 128;            // of one repetition through lanes
  std::vector<int> streams = {1, 2, 3, 4, 5, 6, 7, 8};

  static Effort quick();
};

// What a device's manufacturer says of it, and the largest rate of a copy inside its memory, read
// and written bytes counted. In device.cpp for CUDA; a test has another.
struct DeviceFacts {
  std::size_t l2_bytes = 0;
  Json properties;
};
DeviceFacts device_facts(int index);
double device_copy_rate(cuda::Gpu& gpu, const Effort& effort);

// The measured limits that shares are of [bytes/s].
struct Ceilings {
  double to_device = 0, from_device = 0, both_ways = 0, memory = 0;
};

// A front end and the files that go through it.
struct Geometry {
  std::string name;
  MelOptions options;
  std::int64_t samples = 0;       // of a file
  std::int64_t rows_of_file = 0;  // in an output; windows that fall on each other are computed once
};
std::vector<Geometry> geometries();

// Files one after another as stages pack them: samples, and the place of every window.
struct Pack {
  Pack(const Geometry& geometry, std::size_t most_bytes);
  std::size_t files = 0;
  std::vector<std::int16_t> samples;
  std::vector<std::uint32_t> offsets;
  [[nodiscard]] std::size_t sample_bytes() const { return samples.size() * sizeof(std::int16_t); }
  [[nodiscard]] std::uint32_t frames() const { return static_cast<std::uint32_t>(offsets.size()); }
};

// Memory of a device, or page-locked memory of the host.
class Memory {
 public:
  enum class Kind { device, pinned };
  // Throws cuda::CudaError where there is none left.
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

// Copies between page-locked and device memory: one way by size, and both ways at once.
Json measure_links(cuda::Gpu& gpu, const Effort& effort, Ceilings& ceilings);
// The kernels of one geometry on data that is in device memory, for every path and operand.
Json measure_kernels(cuda::Gpu& gpu, const Geometry& geometry, std::size_t l2_bytes,
                     const Effort& effort, const Ceilings& ceilings);
// From the host's memory through a device and back, by cuda::Lanes with 1 and more streams.
Json measure_lanes(cuda::Gpus& gpus, int index, const Geometry& geometry, const Effort& effort,
                   const Ceilings& ceilings);

// The tables of one device in Markdown.
std::string tables(const Json& device);

// The program, on the devices of cuda::gpus().
int run(int argc, char** argv);

}  // namespace melflow::bench
