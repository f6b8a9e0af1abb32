// Tests cuda_gpu.cpp on a CUDA runtime that records calls: which calls are made, in which order, on
// which device, and the consequences of each failure.
#include <doctest/doctest.h>

#include <cstring>

#include "tests/cuda_runtime/slots_on_runtime.h"

using namespace melflow;
using namespace melflow::cuda;
using namespace melflow::test;

namespace {

// Page-locked and device memory, freed in time.
class Memory {
 public:
  Memory(Gpu& gpu, std::size_t bytes) : Memory(gpu, bytes, bytes) {}
  Memory(Gpu& gpu, std::size_t pinned, std::size_t device)
      : pinned_(gpu.allocate_pinned(pinned), [&gpu](void* p) { gpu.release_pinned(p); }),
        device_(gpu.allocate(device), [&gpu](void* p) { gpu.release(p); }) {}
  [[nodiscard]] void* pinned() const { return pinned_.get(); }
  [[nodiscard]] void* device() const { return device_.get(); }

 private:
  std::unique_ptr<void, std::function<void(void*)>> pinned_, device_;
};

void set(void* flag) { *static_cast<int*>(flag) = 1; }

}  // namespace

TEST_CASE("cuda gpu: what there is, and why there is none") {
  {
    RecordingRuntime runtime(
        {{.name = "old", .major = 7, .minor = 5}, {.name = "new", .major = 9, .memory = 5000}});
    const auto gpus = look_for_gpus();
    const auto list = gpus->list();
    REQUIRE(list.size() == 1);
    CHECK(list[0].index == 1);
    CHECK(list[0].name == "new");
    CHECK(list[0].architecture == "sm_90");
    CHECK(list[0].memory == 5000);
    CHECK(list[0].pci_bus_id == "bus:1");
    CHECK(gpus->open(1)->info().index == 1);
    CHECK(
        gpus->unusable() ==
        std::map<int, std::string>{
            {0, "device 0 (old, sm_75) is older than the kernels, which are for sm_80 and later"}});
    CHECK(runtime.complaints() == "");
  }
  struct Row {
    cudaError_t result;
    int driver;
    std::vector<FakeDevice> devices;
    const char* why;
  };
  const Row rows[] = {
      {cudaErrorNoDevice, 12080, {}, "no CUDA device was found"},
      {cudaErrorInsufficientDriver, 0, {}, "there is no NVIDIA driver on this machine"},
      {cudaErrorInsufficientDriver,
       11040,
       {},
       "the NVIDIA driver is for CUDA 11.4 at most, and this program needs 12.8"},
      {cudaErrorLaunchFailure, 12080, {}, "no CUDA device can be used: a sentence about it"},
      {cudaSuccess,
       12080,
       {{.name = "old", .major = 7, .minor = 5}},
       "device 0 (old, sm_75) is older than the kernels, which are for sm_80 and later"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.why));
    RecordingRuntime runtime(row.devices);
    runtime.count_result = row.result;
    runtime.driver = row.driver;
    const auto gpus = look_for_gpus();
    CHECK(gpus->list().empty());
    CHECK(gpus->why_none() == row.why);
  }
}

TEST_CASE("cuda gpu: the driver is started by the first question for devices, and once") {
  RecordingRuntime runtime;
  const auto gpus = look_for_gpus();
  (void)gpus->may_have_some();
  CHECK(runtime.times_started == 0);
  (void)gpus->list();
  (void)gpus->why_none();
  CHECK(runtime.times_started == 1);
}

TEST_CASE("cuda gpu: a device that does not answer is not in the list, and the others are") {
  RecordingRuntime runtime({{}, {.name = "second"}});
  runtime.fail_at(0, cudaErrorLaunchFailure);
  const auto gpus = look_for_gpus();
  REQUIRE(gpus->list().size() == 1);
  CHECK(gpus->list()[0].name == "second");
  CHECK(gpus->why_none() ==
        "cudaGetDeviceProperties on device 0: cudaErrorLaunchFailure, a sentence about it");
}

TEST_CASE("cuda gpu: work is done in the order it is given, on its device") {
  RecordingRuntime runtime({{}, {}});
  {
    const auto gpus = look_for_gpus();
    const auto gpu = gpus->open(1);
    const Memory memory(*gpu, 2048);
    auto* const behind = static_cast<std::byte*>(memory.pinned()) + 1024;
    const auto stream = gpu->make_stream();
    (void)runtime.take_calls();
    runtime.works_when_asked = false;
    int reached = 0;
    std::memset(memory.pinned(), 7, 1024);
    const std::function<void()> steps[] = {
        [&] { stream->mark(0); },
        [&] { stream->copy_in(memory.device(), memory.pinned(), 1024); },
        [&] { stream->mark(1); },
        [&] { stream->call(set, &reached); },
        [&] { stream->copy_out(behind, memory.device(), 8); },
        [&] { stream->mark(2); },
    };
    for (const auto& step : steps) {
      runtime.device = 0;  // as another thread may have left it
      step();
    }
    CHECK(runtime.take_calls() == "mark, copy in 1024, mark, call, copy out 8, mark");
    stream->check();
    CHECK(reached == 0);
    stream->wait();
    CHECK(reached == 1);
    // A step takes a millisecond.
    CHECK(stream->between(0, 1) == doctest::Approx(0.002));
    CHECK(stream->between(1, 2) == doctest::Approx(0.003));
    CHECK(test::cuda_error_of([&] {
            (void)stream->between(0, 3);
          }).find("cudaEventElapsedTime on device 1") == 0);
  }
  CHECK(runtime.complaints() == "");
}

static void record_and_launch(RecordingRuntime& runtime, Path path) {
  const FrontEnd front_end = *test::front_end_of_columns();
  const auto gpus = look_for_gpus();
  const auto gpu = gpus->open(0);
  const auto program = gpu->make_mel(front_end, {path, {}, {}}, 4);
  const Memory memory(*gpu, 4096, 2048 + program->scratch_bytes());
  const auto stream = gpu->make_stream();
  auto* host = static_cast<std::byte*>(memory.pinned());
  auto* device = static_cast<std::byte*>(memory.device());
  const std::uint32_t count = 2, offsets[] = {0, 3};
  std::memcpy(host, &count, sizeof count);
  std::memcpy(host + 256, offsets, sizeof offsets);
  auto* samples = reinterpret_cast<std::int16_t*>(host + 512);
  MelWork work{device + 512,
               SampleType::int16,
               reinterpret_cast<std::uint32_t*>(device + 256),
               reinterpret_cast<std::uint32_t*>(device),
               4,
               device + 1024,
               device + 2048};
  int reached = 0;
  (void)runtime.take_calls();
  const auto recording = stream->record([&] {
    stream->mark(0);
    stream->copy_in(device, host, 1024);
    stream->mel(*program, work);
    stream->copy_out(host + 1024, device + 1024, 2 * 4 * sizeof(float));
    stream->mark(1);
    stream->call(set, &reached);
  });
  const std::string kernels =
      path == Path::fused ? "kernel, kernel"
                          : "kernel, cufftSetWorkArea, cufftSetStream, kernel, transform, kernel";
  CHECK(runtime.take_calls() == "begin recording, mark, copy in 1024, " + kernels +
                                    ", copy out 32, mark, call, end recording, instantiate");
  CHECK(runtime.graphs.empty());
  for (const auto first : {std::int16_t{5}, std::int16_t{50}}) {
    samples[0] = first;
    samples[3] = static_cast<std::int16_t>(first + 1);
    reached = 0;
    stream->launch(*recording);
    CHECK(runtime.take_calls() == "launch graph");
    runtime.run();
    CHECK(reached == 1);
    const auto* rows = reinterpret_cast<const float*>(host + 1024);
    CHECK(test::is_row_of(rows, first));
    CHECK(test::is_row_of(rows + 4, static_cast<std::int16_t>(first + 1)));
    CHECK(stream->between(0, 1) == doctest::Approx(path == Path::fused ? 0.005 : 0.007));
    (void)runtime.take_calls();
  }
}

TEST_CASE("cuda gpu: a recording holds copies, kernels, calls and times, each launch again") {
  for (const Path path : {Path::fused, Path::cufft}) {
    CAPTURE(path == Path::fused);
    RecordingRuntime runtime;
    record_and_launch(runtime, path);
    CHECK(runtime.complaints() == "");
  }
}

TEST_CASE("cuda gpu: what fails while it is recorded leaves a stream that works") {
  RecordingRuntime runtime;
  {
    const auto gpus = look_for_gpus();
    const auto gpu = gpus->open(0);
    const Memory memory(*gpu, 64);
    const auto stream = gpu->make_stream();
    CHECK_THROWS_AS((void)stream->record([] { throw CudaError("in between"); }), CudaError);
    stream->copy_in(memory.device(), memory.pinned(), 64);
    stream->wait();
  }
  CHECK(runtime.complaints() == "");
}

TEST_CASE("cuda gpu: no memory is a null pointer, any other failure an error with its call") {
  RecordingRuntime runtime(std::vector{FakeDevice{.memory = 1000}});
  runtime.pinned_limit = 2000;
  const auto gpus = look_for_gpus();
  const auto gpu = gpus->open(0);
  CHECK(gpu->allocate(1001) == nullptr);
  // The next call that checks for errors does not find it again.
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(gpu->allocate_pinned(2001) == nullptr);
  CHECK(cudaGetLastError() == cudaSuccess);
  runtime.fail_at(runtime.calls(), cudaErrorLaunchFailure);
  CHECK(test::cuda_error_of([&] { (void)gpu->allocate(10); }) ==
        "cudaMalloc on device 0: cudaErrorLaunchFailure, a sentence about it");
  runtime.devices[0].opens = cudaErrorDevicesUnavailable;
  CHECK(test::cuda_error_of([&] { (void)gpus->open(0); }) ==
        "cudaSetDevice on device 0: cudaErrorDevicesUnavailable, a sentence about it");
}

// Makes every kind of call that a device needs, so that each of them can fail once.
TEST_CASE("cuda gpu: whichever call fails, it is named, and nothing stays behind") {
  const FrontEnd front_end = *test::front_end_of_columns();
  for (const Path path : {Path::fused, Path::cufft}) {
    const auto life = [&] {
      const auto gpus = look_for_gpus();
      const auto gpu = gpus->open(0);
      const auto program = gpu->make_mel(front_end, {path, {}, {}}, 4);
      const Memory memory(*gpu, 4096, 2048 + program->scratch_bytes());
      if (memory.pinned() == nullptr || memory.device() == nullptr) throw CudaError("no memory");
      const auto stream = gpu->make_stream();
      auto* device = static_cast<std::byte*>(memory.device());
      std::memset(memory.pinned(), 0, 4096);
      const auto once = [&] {
        stream->mark(0);
        stream->copy_in(device, memory.pinned(), 1024);
        stream->mel(*program, {device, SampleType::int16, reinterpret_cast<std::uint32_t*>(device),
                               reinterpret_cast<std::uint32_t*>(device), 4, device, device + 2048});
        stream->mark(1);
        stream->copy_out(static_cast<std::byte*>(memory.pinned()) + 2048, device, 64);
      };
      once();
      const auto recording = stream->record(once);
      stream->launch(*recording);
      stream->check();
      stream->wait();
      (void)stream->between(0, 1);
    };
    long calls = 0;
    {
      RecordingRuntime runtime;
      life();
      calls = runtime.calls();
      CHECK(runtime.complaints() == "");
    }
    REQUIRE(calls > 25);
    int named = 0;
    for (const bool lasting : {false, true}) {
      for (long at = 0; at < calls; ++at) {
        RecordingRuntime runtime;
        runtime.fail_at(at, cudaErrorLaunchFailure, lasting);
        const std::string error = test::cuda_error_of(life);
        CAPTURE(at);
        CAPTURE(runtime.failed());
        CHECK(runtime.complaints() == "");
        // Only the report needs a bus, a device that the list misses may be opened anyway, and
        // failures at the end are not reported.
        const bool is_needed = runtime.failed() != "bus id" && runtime.failed() != "properties";
        const bool is_end = at == calls - 1;
        CHECK((!error.empty() || is_end || (!lasting && !is_needed)));
        named += error.find("cudaErrorLaunchFailure") != std::string::npos ? 1 : 0;
        if (runtime.failed().starts_with("cufft") && !lasting)
          CHECK(error == runtime.failed() + ": CUFFT_INTERNAL_ERROR");
      }
    }
    CHECK(named > calls);
  }
}
