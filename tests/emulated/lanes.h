// Kernels on the host: a fiber for each thread of a block, blocks one after another.
//
// In:  a kernel that takes one argument by value, and how it is launched.
// Out: what it writes, and "" or what is wrong with its barriers.
//
// A lane runs until it waits at a barrier or ends, then the next one does, in the order of the
// launch: rising, falling or shuffled, so that what a barrier is missing for has other values.
// Warps go on in turn, one to its end before the next, or as it is drawn. All lanes of a warp have
// to wait at the same barrier, in the same line, and all warps of a block at the same
// __syncthreads(). A block's dynamic shared memory is full of NaN when it begins, and fenced
// behind: by AddressSanitizer or by a pattern. For ThreadSanitizer each lane is a thread of its
// own, and only barriers synchronise.
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
  unsigned blocks = 1, threads = 32;  ///< of the grid, of a block
  std::size_t shared_bytes = 0;       ///< dynamic, of a block
  Argument argument{};
};

/// What a block can have at most on every device that there are kernels for.
constexpr std::size_t most_shared_bytes = std::size_t{99} << 10;

/// One launch at a time in a process; other callers wait.
std::string run_kernel(const KernelLaunch& launch, LaneOrder order, std::uint64_t seed);
/// What lanes have done in all launches: work that is done twice waits and reads twice.
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
