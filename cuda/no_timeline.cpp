// no_timeline.cpp - a build without CUDA has no profiler to show ranges to.

#include "cuda/timeline.h"

namespace melflow::cuda {

std::unique_ptr<Timeline> make_timeline(const std::vector<std::string>&) { return nullptr; }

}  // namespace melflow::cuda
