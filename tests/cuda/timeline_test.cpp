// A timeline exists only for a profiling tool; tests/apps/nvtx_test.cpp tests its contents.
#include "cuda/timeline.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/support/skip.h"

namespace melflow::cuda {

TEST_CASE("timeline: there is none where no tool is attached") {
  if (std::getenv("NVTX_INJECTION64_PATH") != nullptr) {
    test::skip("a tool is attached");
    return;
  }
  CHECK(make_timeline({"read", "mel"}) == nullptr);
}

}  // namespace melflow::cuda
