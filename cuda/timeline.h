// timeline.h - ranges in the timeline of a profiler such as Nsight Systems; plain C++.
//
// The implementation is NVTX's (nvtx_timeline.cpp); a build without CUDA has none (no_gpu.cpp).

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

  // What the calling thread does, until its next pop(); they nest.
  virtual void push(int kind) noexcept = 0;
  virtual void pop() noexcept = 0;
  // What goes on beside all threads; end() may be called on another one.
  [[nodiscard]] virtual std::uint64_t start(int kind) noexcept = 0;
  virtual void end(std::uint64_t range) noexcept = 0;
};

// Ranges named so. Null where no tool is attached to this program.
std::unique_ptr<Timeline> make_timeline(const std::vector<std::string>& kinds);

}  // namespace melflow::cuda
