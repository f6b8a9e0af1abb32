// Opens devices where the system has no threads to give, one after another, on a CUDA runtime in
// which any call can fail.
#include <doctest/doctest.h>

#include "cuda/opening.h"
#include "tests/cuda_runtime/slots_on_runtime.h"
#include "tests/pipeline/thread_limit.h"

using namespace melflow;
using namespace melflow::cuda;
using namespace melflow::test;

namespace {

Opening::Result open_all(Gpus& gpus) {
  const ThreadLimit none(0);
  Opening opening(
      gpus, front_end_of_columns(), slot_settings({}, 0), {kSampleBytes, kFrames},
      [&gpus](std::vector<Opening::LeftOut>& left_out) {
        std::vector<int> out;
        for (const GpuInfo& g : gpus.list()) out.push_back(g.index);
        if (out.empty()) left_out.push_back({-1, gpus.why_none()});
        return out;
      },
      [](std::size_t devices) { return static_cast<int>(devices) + 1; });
  return opening.wait();
}

}  // namespace

TEST_CASE("opening: without threads it is done all the same") {
  RecordingRuntime runtime({{}, {}});
  {
    ClockedGpus gpus;
    const Opening::Result result = open_all(gpus);
    REQUIRE(result.slots != nullptr);
    CHECK(result.slots->count() == 2 * 3);
    CHECK(result.left_out.empty());
  }
  CHECK(runtime.complaints() == "");
}

TEST_CASE("opening: without a device it is said why") {
  RecordingRuntime runtime(std::vector<FakeDevice>{});
  ClockedGpus gpus;
  const Opening::Result result = open_all(gpus);
  CHECK(result.slots == nullptr);
  REQUIRE(result.left_out.size() == 1);
  CHECK(result.left_out[0].index == -1);
  CHECK(result.left_out[0].why == "no CUDA device was found");
}

TEST_CASE("opening: whichever call fails, the other device is there, and nothing stays behind") {
  long calls = 0;
  {
    RecordingRuntime runtime({{}, {}});
    ClockedGpus gpus;
    (void)open_all(gpus);
    calls = runtime.calls();
  }
  REQUIRE(calls > 30);
  for (long at = 0; at < calls; ++at) {
    RecordingRuntime runtime({{}, {}});
    runtime.fail_at(at, cudaErrorLaunchFailure);
    CAPTURE(at);
    {
      ClockedGpus gpus;
      const Opening::Result result = open_all(gpus);
      CAPTURE(runtime.failed());
      REQUIRE(result.slots != nullptr);
      // The failed call costs one device, one slot, or nothing.
      CHECK(result.slots->count() >= 2);
      CHECK(result.left_out.size() + result.slots->devices().size() >= 1);
      if (result.slots->devices().size() == 1 && gpus.list().size() == 2)
        CHECK(result.left_out.at(0).why.find("LaunchFailure") != std::string::npos);
    }
    CHECK(runtime.complaints() == "");
  }
}
