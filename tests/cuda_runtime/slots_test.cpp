// SlotPool on a CUDA runtime that records calls: the steps of a batch, when it is recorded, which
// slot is next, and the consequences when a call fails.
#include <doctest/doctest.h>

#include "tests/cuda_runtime/slots_on_runtime.h"

using namespace melflow;
using namespace melflow::cuda;
using namespace melflow::test;

namespace {

std::string plain_batch(std::uint32_t frames) {
  const std::size_t in = SlotMemory::header + (16 + 4) * frames;
  return "mark, copy in " + std::to_string(in) + ", mark, kernel, kernel, mark, copy out " +
         std::to_string(4 * kColumns * frames) + ", mark, call";
}

// Returns the calls of each of the next batches, one after another in the same slot.
std::vector<std::string> calls_of(RecordingRuntime& runtime, SlotPool& slots,
                                  const std::vector<std::uint32_t>& frames) {
  std::vector<std::string> out;
  std::int16_t first = 0;
  for (const std::uint32_t n : frames) {
    first = static_cast<std::int16_t>(first + 10);
    const SlotPool::Lease slot = slots.take();
    (void)runtime.take_calls();
    submit(*slot, first, n);
    out.push_back(runtime.take_calls());
    runtime.run();
    CHECK(has_rows_of(*slot, first, n));
  }
  return out;
}

// Removes the queries of the last batch's times, which come first.
std::string behind_times(const std::string& calls) {
  const std::string times = "elapsed, elapsed, elapsed, ";
  return calls.starts_with(times) ? calls.substr(times.size()) : calls;
}

}  // namespace

TEST_CASE(
    "slots: a batch is copied in, computed and copied out, with its times and one call back") {
  RecordingRuntime runtime;
  {
    ClockedGpus gpus;
    SlotPool slots(gpus, front_end_of_columns(), slot_settings({0}, 1), kSampleBytes, kFrames);
    runtime.works_when_asked = false;
    const SlotPool::Lease slot = slots.take();
    (void)runtime.take_calls();
    submit(*slot, 7, 60);
    CHECK(runtime.take_calls() == plain_batch(60));
    Completions done;
    int early = 0, late = 0;
    slot->when_done(done, &early);
    std::vector<void*> tags;
    CHECK(!done.wait(tags, 0));
    runtime.run();
    slot->when_done(done, &late);
    CHECK(done.wait(tags, 0));
    CHECK(tags == std::vector<void*>{&early, &late});
    CHECK(has_rows_of(*slot, 7, 60));
    // A step takes a millisecond: the copy in and its mark, two kernels and their mark, the copy
    // out and its mark.
    const SlotTimes t = slots.times();
    CHECK(t.copy_in == doctest::Approx(0.002));
    CHECK(t.compute == doctest::Approx(0.003));
    CHECK(t.copy_out == doctest::Approx(0.002));
    CHECK(t.batches == 1);
    CHECK(t.files == 1);
    CHECK(t.frames == 60);
    CHECK(t.bytes_in == 256 + 60 * 4 + 60 * 16);
    CHECK(t.bytes_out == 60 * kColumns * 4);
  }
  CHECK(runtime.complaints() == "");
}

TEST_CASE("slots: equal batches are recorded once and launched as a whole, where graphs are on") {
  RecordingRuntime runtime;
  {
    ClockedGpus gpus;
    SlotPool slots(gpus, front_end_of_columns(), slot_settings({0}, 1), kSampleBytes, kFrames);
    const auto calls = calls_of(runtime, slots, {100, 100, 100, 95, 60, 60});
    CHECK(calls[0] == plain_batch(100));
    CHECK(behind_times(calls[1]) ==
          "begin recording, " + plain_batch(100) + ", end recording, instantiate, launch graph");
    CHECK(behind_times(calls[2]) == "launch graph");
    CHECK(behind_times(calls[3]) == "launch graph");  // similar in size, up to a tenth
    CHECK(behind_times(calls[4]) == plain_batch(60));
    CHECK(behind_times(calls[5]).starts_with("begin recording, "));
    CHECK(slots.times().replayed == 4);
    CHECK(slots.times().batches == 6);
  }
  CHECK(runtime.complaints() == "");
  {
    ClockedGpus gpus;
    SlotSettings settings = slot_settings({0}, 1);
    settings.graphs = false;
    SlotPool slots(gpus, front_end_of_columns(), settings, kSampleBytes, kFrames);
    for (const std::string& calls : calls_of(runtime, slots, {100, 100, 100}))
      CHECK(behind_times(calls) == plain_batch(100));
    CHECK(slots.times().replayed == 0);
  }
  CHECK(runtime.complaints() == "");
}

TEST_CASE("slots: what cannot be recorded, or launched from its recording, goes plainly") {
  for (const std::string failing : {"begin recording", "instantiate", "launch graph"}) {
    CAPTURE(failing);
    RecordingRuntime runtime;
    {
      ClockedGpus gpus;
      SlotPool slots(gpus, front_end_of_columns(), slot_settings({0}, 1), kSampleBytes, kFrames);
      calls_of(runtime, slots, {100});
      // Counted after the three times of the first batch.
      const long before = failing == "begin recording" ? 0 : failing == "instantiate" ? 11 : 12;
      runtime.fail_at(runtime.calls() + 3 + before, cudaErrorMemoryAllocation);
      const auto calls = calls_of(runtime, slots, {100, 100, 100});
      CHECK(runtime.failed() == failing);
      CHECK(calls[0].ends_with(failing + ", " + plain_batch(100)));
      CHECK(behind_times(calls[1]) == plain_batch(100));
      CHECK(slots.times().replayed == 0);
      CHECK(slots.failures().empty());
    }
    CHECK(runtime.complaints() == "");
  }
}

TEST_CASE(
    "slots: the device with the fewest batches is next, and of it the slot free for longest") {
  RecordingRuntime runtime({{}, {}, {}});
  {
    ClockedGpus gpus;
    SlotPool slots(gpus, front_end_of_columns(), slot_settings({0, 1, 2}, 2), kSampleBytes,
                   kFrames);
    CHECK(slots.count() == 6);
    std::vector<SlotPool::Lease> taken;
    std::vector<int> order;
    for (int i = 0; i < 6; ++i) {
      taken.push_back(slots.take());
      order.push_back(taken.back()->owner().info().index);
    }
    CHECK(order == std::vector<int>{0, 1, 2, 0, 1, 2});
    // Device 1 has no batch in flight, device 2 one, device 0 two.
    Slot* const first_free = taken[4].get();
    taken[4].reset();
    Slot* const next_free = taken[1].get();
    taken[1].reset();
    taken[5].reset();
    taken[1] = slots.take();
    CHECK(taken[1].get() == first_free);
    // Each has one batch in flight: takes the device that was asked longer ago, which is 2.
    taken[5] = slots.take();
    CHECK(taken[5]->owner().info().index == 2);
    taken[4] = slots.take();
    CHECK(taken[4].get() == next_free);
    // Chooses among some devices only.
    taken[0].reset();
    taken[1].reset();
    taken[2].reset();
    const std::vector<int> on{2};
    CHECK(slots.take(on)->owner().info().index == 2);
  }
  CHECK(runtime.complaints() == "");
}

TEST_CASE("slots: a device that fails is out, the others go on, and without any it is said why") {
  RecordingRuntime runtime({{}, {}});
  {
    ClockedGpus gpus;
    SlotPool slots(gpus, front_end_of_columns(), slot_settings({0, 1}, 2), kSampleBytes, kFrames);
    std::vector<SlotPool::Lease> taken{slots.take(), slots.take(), slots.take()};
    submit(*taken[2], 1);  // on device 0, to which the slot returns
    runtime.fail_at(runtime.calls() + 4, cudaErrorLaunchFailure);
    const std::string error = cuda_error_of([&] { submit(*taken[0], 1); });
    CHECK(error == "cudaLaunchKernel: cudaErrorLaunchFailure, a sentence about it");
    CHECK(runtime.failed() == "kernel");
    CHECK(cuda_error_of([&] { taken[2]->check(); }) == error);
    taken[0].reset();
    taken[2].reset();
    for (int i = 0; i < 3; ++i) {
      const SlotPool::Lease slot = slots.take();
      CHECK(slot->owner().info().index == 1);
      submit(*slot, 5);
      slot->wait();
      CHECK(has_rows_of(*slot, 5));
    }
    // Device 1 is asked for, but only the other can be taken.
    const std::vector<int> on{0};
    CHECK(slots.take(on)->owner().info().index == 1);
    runtime.fail_at(runtime.calls(), cudaErrorLaunchFailure);
    CHECK(cuda_error_of([&] { taken[1]->check(); }) != "");
    taken[1].reset();
    CHECK(cuda_error_of([&] { (void)slots.take(); }) ==
          "no device works any more; cudaLaunchKernel: cudaErrorLaunchFailure, a sentence about "
          "it; cudaStreamQuery on device 1: cudaErrorLaunchFailure, a sentence about it");
    CHECK(slots.failures().size() == 2);
  }
  CHECK(runtime.complaints() == "");
}

TEST_CASE("slots: whoever waits for the batch of a slot that goes is told nothing more") {
  RecordingRuntime runtime;
  Completions done;
  {
    ClockedGpus gpus;
    SlotPool slots(gpus, front_end_of_columns(), slot_settings({0}, 1), kSampleBytes, kFrames);
    const SlotPool::Lease slot = slots.take();
    submit(*slot, 7);
    int tag = 0;
    slot->when_done(done, &tag);
  }
  std::vector<void*> tags;
  CHECK(!done.wait(tags, 0));
  CHECK(runtime.complaints() == "");
}

TEST_CASE("slots: a batch that is larger than a slot is a defect that is said, not written") {
  RecordingRuntime runtime;
  {
    ClockedGpus gpus;
    SlotPool slots(gpus, front_end_of_columns(), slot_settings({0}, 1), kSampleBytes, kFrames);
    const SlotPool::Lease slot = slots.take();
    CHECK(cuda_error_of([&] { slot->submit(SampleType::int16, kSampleBytes, kFrames + 1); }) ==
          "a batch of 1600 bytes and 101 frames, in a slot for 1600 and 100");
  }
  CHECK(runtime.complaints() == "");
}

// Makes all calls that slots need, so that each can fail once, alone or with all later ones.
TEST_CASE("slots: whichever call fails, rows are right or it is said, and nothing stays behind") {
  struct Life {
    int right = 0, failed = 0;
    std::string error;
  };
  const auto front_end = front_end_of_columns();
  const auto live = [&front_end](RecordingRuntime&) {
    Life out;
    try {
      ClockedGpus gpus;
      SlotPool slots(gpus, front_end, slot_settings({0, 1}, 2), kSampleBytes, kFrames);
      for (int i = 0; i < 12; ++i) {
        const auto first = static_cast<std::int16_t>(100 * i);
        try {
          const SlotPool::Lease slot = slots.take();
          submit(*slot, first);
          slot->wait();
          has_rows_of(*slot, first) ? ++out.right : throw std::logic_error("wrong rows");
        } catch (const CudaError& e) {
          ++out.failed;
          out.error = e.what();
        }
      }
      (void)slots.times();
    } catch (const CudaError& e) {
      out.error = e.what();
    }
    return out;
  };
  long calls = 0;
  {
    RecordingRuntime runtime({{}, {}});
    CHECK(live(runtime).right == 12);
    calls = runtime.calls();
    CHECK(runtime.complaints() == "");
  }
  REQUIRE(calls > 150);
  for (const bool lasting : {false, true}) {
    for (long at = 0; at < calls; ++at) {
      RecordingRuntime runtime({{}, {}});
      runtime.fail_at(at, cudaErrorLaunchFailure, lasting);
      CAPTURE(at);
      CAPTURE(lasting);
      Life life;
      CHECK_NOTHROW(life = live(runtime));
      CAPTURE(runtime.failed());
      CAPTURE(life.error);
      CHECK(runtime.complaints() == "");
      // One failure costs one device, and the other does the rest.
      if (!lasting && life.right + life.failed > 0) CHECK(life.right >= 11);
      if (life.right < 12) CHECK(life.error != "");
    }
  }
}
