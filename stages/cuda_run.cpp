#include "stages/cuda_run.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cuda/error.h"
#include "cuda/gpu.h"

namespace melflow {
namespace {

// Room for what a batch is longer by than what makes it full.
constexpr double kHeadroom = 1.25;

Value seconds(double s) { return Value::scalar(fmt::format("{:.6f}", s)); }

std::vector<int> indices_of(const Devices& devices) {
  if (!devices.indices.empty()) return devices.indices;
  std::vector<int> all;
  for (const cuda::GpuInfo& g : cuda::gpus().list()) all.push_back(g.index);
  return all;
}

}  // namespace

CudaRun::CudaRun(const MelNodeOptions& options) : front_(options.mel), options_(options.backend) {}

void CudaRun::start(RunContext& run) {
  if (lanes_) return;
  const MelPlan& plan = *front_.mel_plan();
  const std::size_t bytes = options_.accumulate.value_or(AccumulateOptions{}).bytes.count;
  const auto sample_bytes = static_cast<std::size_t>(kHeadroom * static_cast<double>(bytes));
  // As many frames as follow each other on so many int16 samples; a batch with more makes room.
  const auto frames = static_cast<std::uint32_t>(
      std::min<double>(4e9, static_cast<double>(sample_bytes) / 2 / plan.hop() + 1024));
  cuda::LaneSettings settings;
  settings.devices = indices_of(options_.devices);
  settings.streams = options_.streams;
  settings.pinned_limit = run.pinned_memory;
  settings.device_limit = run.device_memory;
  settings.kernel.path = options_.path;
  settings.kernel.operands = options_.operands.type;
  try {
    lanes_ = std::make_unique<cuda::Lanes>(cuda::gpus(), front_.mel_plan(), settings, sample_bytes,
                                           frames);
  } catch (const std::exception& e) {
    throw RunError(e.what());
  }
}

void CudaRun::finish() {
  if (!lanes_) return;
  const cuda::LaneTimes t = lanes_->times();
  std::vector<Value> names;
  for (const cuda::GpuInfo& g : lanes_->devices())
    names.push_back(Value::scalar(fmt::format("{}: {} ({})", g.index, g.name, g.architecture)));
  summary_ = {{"backend", Value::scalar("cuda")},
              {"devices", Value::list(std::move(names))},
              {"kernels", Value::scalar(lanes_->description())},
              {"batches", Value::scalar(std::to_string(t.batches))},
              {"replayed", Value::scalar(std::to_string(t.replayed))},
              {"device_copy_in_seconds", seconds(t.copy_in)},
              {"device_mel_seconds", seconds(t.compute)},
              {"device_copy_out_seconds", seconds(t.copy_out)},
              {"bytes_to_device", Value::scalar(std::to_string(t.bytes_in))},
              {"bytes_from_device", Value::scalar(std::to_string(t.bytes_out))}};
  lanes_.reset();
}

std::vector<std::pair<std::string, Value>> CudaRun::summary() const { return summary_; }

}  // namespace melflow
