// The controls of fake_nvml.cpp, a library with NVML's symbols and known figures. It has the
// devices "bus:0" and "bus:1" (tests/emulated/host_gpus.h).
#pragma once

#include <cstddef>

namespace melflow::test {

struct FakeNvml {
  // Restores the state in which the library was opened.
  void (*reset)() = nullptr;
  // Makes this function of NVML return that error from now on.
  void (*fail)(const char* function, int error) = nullptr;
  // Waits until the utilisation of a device was queried `calls` times.
  void (*wait)(int device, std::size_t calls) = nullptr;
  // Makes every function hang until hang(false).
  void (*hang)(bool on) = nullptr;
  // Waits until every session that was begun has ended.
  void (*wait_for_end)() = nullptr;
  // Returns the number of sessions: calls of init() without a shutdown().
  int (*open_sessions)() = nullptr;
};

/// The name of the library's symbol: a FakeNvml.
constexpr const char* kFakeNvml = "melflow_fake_nvml";

// The result of the n-th call for a device, n from 1.
inline unsigned fake_utilization(int device, std::size_t n) {
  return static_cast<unsigned>(n * 30 % 100) + static_cast<unsigned>(device);
}
inline unsigned long long fake_memory(int device, std::size_t n) {
  return (1000 - (n > 3 ? n : 3) + static_cast<unsigned>(device)) << 20;
}
constexpr unsigned long long kFakeTotalMemory = 80ULL << 30;
constexpr const char* kFakeDriver = "555.42";

}  // namespace melflow::test
