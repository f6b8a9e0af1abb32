// A library with NVML's symbols; MELFLOW_NVML_IS_OLD omits one of them.
#include "tests/cuda/fake_nvml/fake_nvml.h"

#include <array>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

using namespace melflow::test;

namespace {

struct Device {
  int index = 0;
  std::size_t utilization_calls = 0, memory_calls = 0;
};

constexpr std::array kFresh{Device{0, 0, 0}, Device{1, 0, 0}};

struct State {
  std::mutex mutex;
  std::condition_variable called;
  std::array<Device, 2> devices = kFresh;
  std::map<std::string, int> errors;
  int sessions = 0;
  bool hangs = false;
};

State& state() {
  static State s;
  return s;
}

// Runs body(state) unless the function is set to fail.
template <class F>
int call(const char* function, F&& body) {
  State& s = state();
  std::unique_lock lock(s.mutex);
  s.called.wait(lock, [&s] { return !s.hangs; });
  if (const auto it = s.errors.find(function); it != s.errors.end()) return it->second;
  if (s.sessions == 0 && std::strcmp(function, "nvmlInit_v2") != 0) return 1;  // uninitialised
  return body(s);
}

void reset() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.devices = kFresh;
  s.errors.clear();
  s.sessions = 0;
}

void fail(const char* function, int error) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.errors[function] = error;
}

void wait(int device, std::size_t calls) {
  State& s = state();
  std::unique_lock lock(s.mutex);
  const Device& d = s.devices.at(static_cast<std::size_t>(device));
  s.called.wait(lock, [&] { return d.utilization_calls >= calls; });
}

void hang(bool on) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.hangs = on;
  s.called.notify_all();
}

void wait_for_end() {
  State& s = state();
  std::unique_lock lock(s.mutex);
  s.called.wait(lock, [&] { return s.sessions == 0; });
}

int open_sessions() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.sessions;
}

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};

}  // namespace

extern "C" {

FakeNvml melflow_fake_nvml = {reset, fail, wait, hang, wait_for_end, open_sessions};

int nvmlInit_v2() {
  return call("nvmlInit_v2", [](State& s) {
    ++s.sessions;
    return 0;
  });
}

int nvmlShutdown() {
  return call("nvmlShutdown", [](State& s) {
    --s.sessions;
    s.called.notify_all();
    return 0;
  });
}

const char* nvmlErrorString(int error) {
  switch (error) {
    case 1:
      return "Uninitialized";
    case 3:
      return "Not Supported";
    case 6:
      return "Not Found";
    case 9:
      return "Driver Not Loaded";
    default:
      return "Unknown Error";
  }
}

int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return call("nvmlSystemGetDriverVersion", [&](State&) {
    if (length <= std::strlen(kFakeDriver)) return 7;
    std::strcpy(version, kFakeDriver);
    return 0;
  });
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  return call("nvmlDeviceGetHandleByPciBusId_v2", [&](State& s) {
    for (Device& d : s.devices) {
      if ("bus:" + std::to_string(d.index) != bus_id) continue;
      *device = &d;
      return 0;
    }
    return 6;
  });
}

int nvmlDeviceGetUtilizationRates(void* device, Utilization* out) {
  return call("nvmlDeviceGetUtilizationRates", [&](State& s) {
    Device& d = *static_cast<Device*>(device);
    *out = {fake_utilization(d.index, ++d.utilization_calls), 1};
    s.called.notify_all();
    return 0;
  });
}

#ifndef MELFLOW_NVML_IS_OLD
int nvmlDeviceGetMemoryInfo(void* device, Memory* out) {
  return call("nvmlDeviceGetMemoryInfo", [&](State&) {
    Device& d = *static_cast<Device*>(device);
    const unsigned long long used = fake_memory(d.index, ++d.memory_calls);
    *out = {kFakeTotalMemory, kFakeTotalMemory - used, used};
    return 0;
  });
}
#endif

int nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* generation) {
  return call("nvmlDeviceGetCurrPcieLinkGeneration", [&](State&) {
    *generation = 5;
    return 0;
  });
}

int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* width) {
  return call("nvmlDeviceGetCurrPcieLinkWidth", [&](State&) {
    *width = 16;
    return 0;
  });
}

}  // extern "C"
