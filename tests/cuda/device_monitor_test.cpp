// What a run reports about devices, with an NVML whose figures are known and with a defective one.
#include "cuda/device_monitor.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "cuda/error.h"
#include "cuda/nvml_library.h"
#include "tests/cuda/fake_nvml/fake_nvml.h"
#include "tests/support/skip.h"
#include "tests/support/watchdog.h"

namespace melflow::cuda {
namespace {

using namespace melflow::test;

constexpr std::chrono::hours never{1};
constexpr std::chrono::milliseconds often{1};
// Waits for the end of a thread that may get no core for a while.
constexpr std::chrono::hours patient{1};

// Sets MELFLOW_NVML to this file as long as the object lives.
class NvmlFile {
 public:
  explicit NvmlFile(const char* path) { setenv("MELFLOW_NVML", path, 1); }
  NvmlFile(const NvmlFile&) = delete;
  NvmlFile& operator=(const NvmlFile&) = delete;
  ~NvmlFile() { unsetenv("MELFLOW_NVML"); }
};

// The NVML with known figures, in its initial state.
class Fake {
 public:
  Fake() : file_(MELFLOW_FAKE_NVML), handle_(dlopen(MELFLOW_FAKE_NVML, RTLD_NOW)) {
    REQUIRE(handle_ != nullptr);
    nvml_ = static_cast<FakeNvml*>(dlsym(handle_, test::kFakeNvml));
    REQUIRE(nvml_ != nullptr);
    nvml_->reset();
  }
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;
  ~Fake() { dlclose(handle_); }
  FakeNvml* operator->() const { return nvml_; }

 private:
  NvmlFile file_;
  void* handle_;
  FakeNvml* nvml_ = nullptr;
};

GpuInfo device(int index, const std::string& bus_id) {
  return {index, "a device", "host", 0, bus_id};
}

void check_figures(const DeviceUse& use, int device) {
  REQUIRE(use.samples > 0);
  unsigned sum = 0, most = 0;
  unsigned long long most_memory = 0;
  for (std::size_t n = 1; n <= use.samples; ++n) {
    sum += fake_utilization(device, n);
    most = std::max(most, fake_utilization(device, n));
    most_memory = std::max(most_memory, fake_memory(device, n));
  }
  CHECK(use.mean_utilization == doctest::Approx(sum / static_cast<double>(use.samples)));
  CHECK(use.most_utilization == most);
  CHECK(use.most_memory == most_memory);
  CHECK(use.total_memory == test::kFakeTotalMemory);
  const std::size_t each = use.samples_of_piece;
  REQUIRE(use.utilization_over_time.size() == (use.samples + each - 1) / each);
  CHECK(use.utilization_over_time.size() <= DeviceUse::kMostPieces);
  for (std::size_t i = 0; i < use.utilization_over_time.size(); ++i) {
    double mean = 0;
    const std::size_t end = std::min((i + 1) * each, use.samples);
    for (std::size_t n = i * each + 1; n <= end; ++n) mean += fake_utilization(device, n);
    mean /= static_cast<double>(end - i * each);
    CAPTURE(i);
    CHECK(use.utilization_over_time[i] == doctest::Approx(mean));
  }
}

TEST_CASE("device monitor: use over time, in no more pieces however long a run is") {
  const test::Watchdog watchdog("device monitor: over time");
  const Fake nvml;
  DeviceMonitor monitor({device(0, "bus:0")}, patient, std::chrono::milliseconds(0));
  nvml->wait(0, 250);
  const DeviceUses uses = monitor.finish();
  REQUIRE(uses.devices.size() == 1);
  CHECK(uses.devices[0].samples_of_piece >= 4);
  check_figures(uses.devices[0], 0);
}

TEST_CASE(
    "device monitor: mean and greatest of many samples, of the device at that place on the bus") {
  const test::Watchdog watchdog("device monitor: samples");
  const Fake nvml;
  // In the order that CUDA_VISIBLE_DEVICES=1,0 would give them.
  DeviceMonitor monitor({device(0, "bus:1"), device(1, "bus:0")}, patient, often);
  nvml->wait(0, 5);
  nvml->wait(1, 5);
  const DeviceUses uses = monitor.finish();
  CHECK(uses.why_none == "");
  CHECK(uses.driver_version == test::kFakeDriver);
  REQUIRE(uses.devices.size() == 2);
  for (const int i : {0, 1}) {
    CAPTURE(i);
    const DeviceUse& use = uses.devices[static_cast<std::size_t>(i)];
    CHECK(use.index == i);
    CHECK(use.name == "a device");
    CHECK(use.missing == "");
    CHECK(use.samples >= 5);
    CHECK(use.pcie_generation == 5);
    CHECK(use.pcie_width == 16);
    check_figures(use, 1 - i);
  }
  CHECK(nvml->open_sessions() == 0);
}

TEST_CASE("device monitor: a call that does not return is left to itself") {
  const test::Watchdog watchdog("device monitor: a call that hangs");
  const Fake nvml;
  {
    DeviceMonitor monitor({device(0, "bus:0")}, std::chrono::milliseconds(50), often);
    nvml->wait(0, 2);
    nvml->hang(true);
    const DeviceUses uses = monitor.finish();
    CHECK(uses.why_none == "NVML does not answer");
    CHECK(uses.devices.empty());
  }
  nvml->hang(false);
  nvml->wait_for_end();
}

TEST_CASE("device monitor: the end does not wait for the next sample, and there is always one") {
  const test::Watchdog watchdog("device monitor: the end");
  const Fake nvml;
  DeviceMonitor monitor({device(0, "bus:0")}, patient, never);
  const DeviceUses uses = monitor.finish();
  REQUIRE(uses.devices.size() == 1);
  CHECK(uses.devices[0].samples == 1);
  check_figures(uses.devices[0], 0);
  const DeviceMonitor dropped({device(0, "bus:0")}, patient, never);
}

TEST_CASE("device monitor: without NVML, or with one that does not begin, there is a reason") {
  struct Row {
    const char* file;
    int init;
    std::string expected;
  };
  const Row rows[] = {
      {"/no/such/libnvidia-ml.so.1", 0,
       "NVML, which is part of NVIDIA's driver, is not there (/no/such/libnvidia-ml.so.1: cannot "
       "open shared object file: No such file or directory); MELFLOW_NVML can name its file"},
      {MELFLOW_OLD_NVML, 0,
       std::string(MELFLOW_OLD_NVML) +
           " has no nvmlDeviceGetMemoryInfo, so it is not NVML, or an old one"},
      {MELFLOW_FAKE_NVML, 9, "nvmlInit: Driver Not Loaded"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.file));
    const Fake nvml;
    if (row.init != 0) nvml->fail("nvmlInit_v2", row.init);
    const NvmlFile file(row.file);
    const DeviceUses uses = DeviceMonitor({device(0, "bus:0")}, patient, never).finish();
    CHECK(uses.why_none == row.expected);
    CHECK(uses.devices.empty());
    CHECK(nvml->open_sessions() == 0);
  }
}

TEST_CASE("device monitor: a device that NVML does not know says so, the other has its figures") {
  const Fake nvml;
  const DeviceUses uses =
      DeviceMonitor({device(0, "0000:65:00.0"), device(1, "bus:1")}, patient, never).finish();
  CHECK(uses.why_none == "");
  REQUIRE(uses.devices.size() == 2);
  CHECK(uses.devices[0].missing == "nvmlDeviceGetHandleByPciBusId(0000:65:00.0): Not Found");
  CHECK(uses.devices[0].samples == 0);
  CHECK(uses.devices[0].total_memory == 0);
  check_figures(uses.devices[1], 1);
}

TEST_CASE("device monitor: what one call refuses does not take away what others give") {
  {
    const Fake nvml;
    nvml->fail("nvmlDeviceGetUtilizationRates", 3);
    const DeviceUses uses = DeviceMonitor({device(0, "bus:0")}, patient, never).finish();
    REQUIRE(uses.devices.size() == 1);
    CHECK(uses.devices[0].missing == "nvmlDeviceGetUtilizationRates: Not Supported");
    CHECK(uses.devices[0].samples == 0);
    CHECK(uses.devices[0].most_memory == fake_memory(0, 1));
  }
  {
    const Fake nvml;
    nvml->fail("nvmlDeviceGetMemoryInfo", 3);
    nvml->fail("nvmlSystemGetDriverVersion", 3);
    nvml->fail("nvmlDeviceGetCurrPcieLinkWidth", 3);
    const DeviceUses uses = DeviceMonitor({device(0, "bus:0")}, patient, never).finish();
    CHECK(uses.driver_version == "");
    REQUIRE(uses.devices.size() == 1);
    CHECK(uses.devices[0].missing == "nvmlDeviceGetMemoryInfo: Not Supported");
    CHECK(uses.devices[0].total_memory == 0);
    CHECK(uses.devices[0].pcie_width == 0);
    CHECK(uses.devices[0].most_utilization == fake_utilization(0, 1));
  }
}

TEST_CASE("device monitor: samples until a device fails are kept") {
  const test::Watchdog watchdog("device monitor: failing");
  const Fake nvml;
  DeviceMonitor monitor({device(0, "bus:0")}, patient, often);
  nvml->wait(0, 3);
  nvml->fail("nvmlDeviceGetUtilizationRates", 999);
  const DeviceUses uses = monitor.finish();
  REQUIRE(uses.devices.size() == 1);
  CHECK(uses.devices[0].missing == "nvmlDeviceGetUtilizationRates: Unknown Error");
  REQUIRE(uses.devices[0].samples >= 3);
  unsigned most = 0;
  for (std::size_t n = 1; n <= uses.devices[0].samples; ++n)
    most = std::max(most, fake_utilization(0, n));
  CHECK(uses.devices[0].most_utilization == most);
}

TEST_CASE("nvml library: the environment names the file, else it is the driver's") {
  unsetenv("MELFLOW_NVML");
  CHECK(NvmlLibrary::default_path() == "libnvidia-ml.so.1");
  const NvmlFile file("/opt/libnvidia-ml.so");
  CHECK(NvmlLibrary::default_path() == "/opt/libnvidia-ml.so");
  CHECK_THROWS_AS(NvmlLibrary{}, CudaError);
}

TEST_CASE("nvml library: it is opened where it is installed") {
  try {
    const NvmlLibrary library;
    const NvmlFunctions& f = library.functions();
    const int begun = f.init();
    char version[96] = "";
    if (begun == 0) {
      CHECK(f.driver_version(version, sizeof version) == 0);
      CHECK(f.shutdown() == 0);
    }
    MESSAGE(library.path() << ": " << std::string(f.error_text(begun)) << ", driver "
                           << std::string(version));
  } catch (const CudaError& error) {
    test::skip(error.what());
  }
}

}  // namespace
}  // namespace melflow::cuda
