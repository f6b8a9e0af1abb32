// Runs kernels on the host: a fiber for each thread of a block, blocks one after another.
//
// In:  a kernel that takes one argument by value, and its launch.
// Out: the kernel's results, and "" or the error in its barriers.
//
// A lane runs until it waits at a barrier or ends, then the next lane runs, in the order of the
// launch: rising, falling or shuffled, so that a missing barrier changes values. Warps take turns,
// run to their end one by one, or are drawn. All lanes of a warp must wait at the same barrier, in
// the same line, and all warps of a block at the same __syncthreads(). A block's dynamic shared
// memory is filled with NaN at the start and fenced at its end, by AddressSanitizer or by a
// pattern. For ThreadSanitizer each lane is a separate thread, and only barriers synchronise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

struct dim3 {
  unsigned x;
  explicit dim3(unsigned all) : x(all) {}
};

namespace melflow::test {

enum class LaneOrder { rising, falling, shuffled };

struct KernelLaunch {
  static constexpr std::size_t most_argument_bytes = 256;
  using Argument = std::array<std::byte, most_argument_bytes>;

  const void* kernel = nullptr;
  unsigned blocks = 1, threads = 32;  ///< of the grid; of a block
  std::size_t shared_bytes = 0;       ///< dynamic shared memory of a block
  Argument argument{};
};

/// The most shared memory that a block can have on every device for which there are kernels.
constexpr std::size_t most_shared_bytes = std::size_t{99} << 10;

/// Runs a kernel, one launch at a time in a process; other callers wait.
std::string run_kernel(const KernelLaunch& launch, LaneOrder order, std::uint64_t seed);
/// Counts of the lanes' work in all launches: work that is done twice waits and reads twice.
struct LaneCounts {
  std::uint64_t blocks = 0;
  std::uint64_t waits = 0;  ///< at barriers
  std::uint64_t reads = 0;  ///< by __ldg
};
LaneCounts lane_counts();

// ---- for kernels

dim3 thread_index();
dim3 block_index();
dim3 block_size();
dim3 grid_size();
void count_read();
void wait_for_warp(int line);
void wait_for_block(int line);

}  // namespace melflow::test
