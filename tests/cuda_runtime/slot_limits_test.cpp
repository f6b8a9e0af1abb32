// SlotPool on a CUDA runtime that records calls: the number of slots where memory is short, and a
// device that stops working.
#include <doctest/doctest.h>

#include "tests/cuda_runtime/slots_on_runtime.h"

using namespace melflow;
using namespace melflow::cuda;
using namespace melflow::test;

TEST_CASE("slots: there are fewer where memory is short, and one at least") {
  const std::size_t in = SlotMemory::bytes_in({kSampleBytes, kFrames});
  const std::size_t out = SlotMemory::bytes_out({kSampleBytes, kFrames}, 4 * kColumns);
  const std::size_t scratch = 1024 + 512;  // conditioned frames and their positions
  const std::size_t tables = [] {
    RecordingRuntime runtime;
    const cuda::MelKernels kernels(*front_end_of_columns(), {}, kFrames);
    return runtime.counts.device_taken.load();
  }();
  struct Row {
    const char* what;
    std::size_t pinned_limit, device_limit, pinned, device;
    std::size_t slots;  ///< 0: none, which is an error
    const char* error;
  };
  constexpr std::size_t kPlenty = 1 << 30;
  const std::size_t each = in + out, on_device = in + out + scratch;
  const Row rows[] = {
      {"all", kPlenty, kPlenty, kPlenty, kPlenty, 5, ""},
      {"half of memory.pinned stays", 6 * each, kPlenty, kPlenty, kPlenty, 3, ""},
      {"memory.pinned for one", each, kPlenty, kPlenty, kPlenty, 1, ""},
      {"memory.pinned", each - 1, kPlenty, kPlenty, kPlenty, 0, "memory.pinned: a batch"},
      {"memory.device", kPlenty, 2 * on_device, kPlenty, kPlenty, 2, ""},
      {"memory.device for none", kPlenty, on_device - 1, kPlenty, kPlenty, 0,
       "memory.device: a batch"},
      {"page-locked memory", kPlenty, kPlenty, 2 * each, kPlenty, 2, ""},
      {"page-locked memory for none", kPlenty, kPlenty, each - 1, kPlenty, 0,
       "pinned memory: there is no room"},
      {"the device's", kPlenty, kPlenty, kPlenty, tables + 3 * on_device, 3, ""},
      {"the device's for none", kPlenty, kPlenty, kPlenty, tables + on_device - 1, 0,
       "device memory: there is no room"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    RecordingRuntime runtime(std::vector{FakeDevice{.memory = row.device}});
    runtime.pinned_limit = row.pinned;
    std::size_t count = 0;
    SlotSettings settings = slot_settings({0}, 5);
    settings.memory = std::make_shared<DeviceBudget>(row.pinned_limit, row.device_limit);
    const std::string error = cuda_error_of([&] {
      ClockedGpus gpus;
      SlotPool slots(gpus, front_end_of_columns(), settings, kSampleBytes, kFrames);
      count = slots.count();
    });
    CHECK(count == row.slots);
    CHECK(error.find(row.error) == 0);
    CHECK((error.empty()) == (row.slots > 0));
    CHECK(settings.memory->pinned_left() == row.pinned_limit);
    CHECK(runtime.complaints() == "");
  }
}

TEST_CASE("slots: a device that hangs is given up, and nothing is called on it any more") {
  // Leaks: slots of the hanging device remain, so this runtime must, too.
  static auto* const runtime = new RecordingRuntime({{}, {}});
  ClockedGpus gpus;
  {
    SlotSettings settings = slot_settings({0, 1}, 2);
    settings.patience = 60;
    SlotPool slots(gpus, front_end_of_columns(), settings, kSampleBytes, kFrames);
    std::vector<SlotPool::Lease> taken{slots.take(), slots.take()};
    REQUIRE(taken[0]->owner().info().index == 0);
    // An idle device is not a hanging one.
    gpus.time = 1000;
    taken[0]->check();
    submit(*taken[0], 1);
    submit(*taken[1], 1);
    taken[1]->wait();
    runtime->hangs = true;
    Completions done;
    int tag = 0;
    taken[0]->when_done(done, &tag);
    gpus.time = 1060;
    taken[0]->check();
    gpus.time = 1061;
    const std::string error = cuda_error_of([&] { taken[0]->check(); });
    CHECK(error ==
          "device 0 (emulated) has done nothing for 61 s with 1 batches under way; it is given up");
    (void)runtime->take_calls();
    taken[0]->finish();
    taken[0].reset();
    // The other device continues.
    CHECK(slots.take()->owner().info().index == 1);
    CHECK(slots.failures() == std::vector<std::string>{error});
    taken[1].reset();
    (void)slots.times();
    runtime->hangs = false;
    (void)runtime->take_calls();
  }
  // Only the working device is synchronised.
  CHECK(runtime->take_calls() == "synchronise stream, synchronise stream");
  CHECK(runtime->streams.size() == 2);
  CHECK(runtime->complaints().find("waited for") == std::string::npos);
  // The hanging device may access its slots at any later time.
  runtime->run();
}

TEST_CASE("slots: the time in which a device has nothing to do is its gaps") {
  RecordingRuntime runtime;
  {
    ClockedGpus gpus;
    SlotPool slots(gpus, front_end_of_columns(), slot_settings({0}, 2), kSampleBytes, kFrames);
    runtime.works_when_asked = false;
    const auto batch = [&](double begin, double end) {
      gpus.time = begin;
      const SlotPool::Lease slot = slots.take();
      submit(*slot, 1);
      gpus.time = end;
      runtime.run();
    };
    batch(10, 12);
    batch(15, 16);
    batch(16, 20);
    const SlotTimes t = slots.times();
    CHECK(t.span == doctest::Approx(10));
    CHECK(t.idle == doctest::Approx(3));
  }
  CHECK(runtime.complaints() == "");
}
