// timeline.h - ranges in the timeline of a profiler such as Nsight Systems; plain C++.
//
// Implemented with NVTX (nvtx_timeline.cpp); a build without CUDA has none (no_timeline.cpp).

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace melflow::cuda {

// Ranges of a few kinds, each with a name and a colour of its own. From any thread.
class Timeline {
 public:
  Timeline() = default;
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;
  virtual ~Timeline() = default;

  // Begins a range of the calling thread, until its next pop(); ranges nest.
  virtual void push(int kind) noexcept = 0;
  virtual void pop() noexcept = 0;
  // Begins a range that belongs to no thread; any thread may call end().
  [[nodiscard]] virtual std::uint64_t start(int kind) noexcept = 0;
  virtual void end(std::uint64_t range) noexcept = 0;
};

// Makes ranges with these names. Null if no tool is attached to this program.
std::unique_ptr<Timeline> make_timeline(const std::vector<std::string>& kinds);

}  // namespace melflow::cuda
