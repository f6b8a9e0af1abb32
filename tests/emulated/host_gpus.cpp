#include "tests/emulated/host_gpus.h"

#include <vector>

#include "cuda/error.h"

namespace melflow::test {
namespace {

std::vector<FakeDevice> devices_of(const HostGpuOptions& options) {
  std::vector<FakeDevice> out;
  for (int i = 0; i < options.devices; ++i)
    out.push_back({.major = i == 0 ? 9 : options.second_major,
                   .memory = i == options.full ? std::size_t{128} << 10 : options.device_memory});
  return out;
}

}  // namespace

HostGpus::HostGpus(HostGpuOptions options)
    : options_(std::move(options)), runtime(devices_of(options_)) {
  runtime.pinned_limit = options_.pinned_memory;
  runtime.break_at = options_.break_at;
  runtime.hang_at = options_.hang_at;
  runtime.drive();
}

HostGpus::~HostGpus() {
  release();
  // Waits for all hanging calls before the members are destroyed.
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return counts.hanging == 0; });
}

void HostGpus::release() {
  const std::lock_guard lock(mutex_);
  is_released_ = true;
  changed_.notify_all();
}

std::unique_ptr<cuda::Gpu> HostGpus::open(int index) {
  if (index == options_.hangs_opening || index == options_.opens_late) {
    std::unique_lock lock(mutex_);
    ++counts.hanging;
    changed_.wait(lock, [this] { return is_released_; });
    --counts.hanging;
    changed_.notify_all();
    if (index == options_.hangs_opening) throw cuda::CudaError("it came back too late");
  }
  if (const auto it = options_.refuses.find(index); it != options_.refuses.end())
    throw cuda::CudaError(it->second);
  ++counts.opened;
  return gpus_->open(index);
}

}  // namespace melflow::test
