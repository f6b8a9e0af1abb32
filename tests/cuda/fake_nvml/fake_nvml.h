// What a test may ask of fake_nvml.cpp, a library with NVML's symbols and known figures. It has the
// devices "bus:0" and "bus:1" (tests/emulated/host_gpus.h).
#pragma once

#include <cstddef>

namespace melflow::test {

struct FakeNvml {
  // Everything as it was when the library was opened.
  void (*reset)() = nullptr;
  // From now on this function of NVML gives that error.
  void (*fail)(const char* function, int error) = nullptr;
  // Waits until the utilisation of a device was asked for that often.
  void (*wait)(int device, std::size_t calls) = nullptr;
  // From now on every function waits until this is taken back.
  void (*hang)(bool on) = nullptr;
  // Waits until as many sessions were begun as ended.
  void (*wait_for_end)() = nullptr;
  // How often init() was called and shutdown() was not.
  int (*open_sessions)() = nullptr;
};

/// The symbol of the library: a FakeNvml.
constexpr const char* kFakeNvml = "melflow_fake_nvml";

// What the n-th call for a device gives, n from 1.
inline unsigned fake_utilization(int device, std::size_t n) {
  return static_cast<unsigned>(n * 30 % 100) + static_cast<unsigned>(device);
}
inline unsigned long long fake_memory(int device, std::size_t n) {
  return (1000 - (n > 3 ? n : 3) + static_cast<unsigned>(device)) << 20;
}
constexpr unsigned long long kFakeTotalMemory = 80ULL << 30;
constexpr const char* kFakeDriver = "555.42";

}  // namespace melflow::test
