#include "stages/device/cuda_run.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cuda/error.h"
#include "cuda/gpu.h"
#include "pipeline/cpu.h"
#include "stages/device/lane_load.h"

namespace melflow {
namespace {

Value seconds(double s) { return Value::scalar(fmt::format("{:.6f}", s)); }
Value count(std::size_t n) { return Value::scalar(std::to_string(n)); }
Value words(std::string text) { return Value::scalar(std::move(text), {}, true); }

Value use_value(const cuda::DeviceUse& use) {
  Value out;
  out.set("device", Value::scalar(std::to_string(use.index)));
  out.set("name", words(use.name));
  if (use.samples > 0) {
    Value percent;
    percent.set("mean", Value::scalar(fmt::format("{:.1f}", use.mean_utilization)));
    percent.set("most", count(use.most_utilization));
    percent.set("samples", count(use.samples));
    out.set("utilization_percent", std::move(percent));
  }
  if (use.total_memory > 0) {
    Value bytes;
    bytes.set("most", count(use.most_memory));
    bytes.set("total", count(use.total_memory));
    out.set("memory_bytes", std::move(bytes));
  }
  if (use.pcie_generation > 0 && use.pcie_width > 0) {
    Value link;
    link.set("generation", count(use.pcie_generation));
    link.set("lanes", count(use.pcie_width));
    out.set("pcie", std::move(link));
  }
  if (!use.missing.empty()) out.set("not_known", words(use.missing));
  return out;
}

// Appends what NVML said.
void add_uses(const cuda::DeviceUses& uses, std::vector<std::pair<std::string, Value>>& summary) {
  if (!uses.why_none.empty()) {
    summary.emplace_back("device_use", words("not known: " + uses.why_none));
    return;
  }
  std::vector<Value> all;
  for (const cuda::DeviceUse& use : uses.devices) all.push_back(use_value(use));
  summary.emplace_back("device_use", Value::list(std::move(all)));
  if (!uses.driver_version.empty()) summary.emplace_back("driver", words(uses.driver_version));
}

}  // namespace

CudaRun::CudaRun(const MelNodeOptions& options) : front_(options.mel), options_(options.backend) {}

std::vector<cuda::GpuInfo> CudaRun::devices() const {
  const std::vector<cuda::GpuInfo> all = cuda::gpus().list();
  std::vector<cuda::GpuInfo> out;
  if (options_.devices.indices.empty()) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(out), [&all](const cuda::GpuInfo& g) {
      return g.architecture == all.front().architecture;
    });
    return out;
  }
  for (const int index : options_.devices.indices) {
    const auto it = std::find_if(all.begin(), all.end(),
                                 [index](const cuda::GpuInfo& g) { return g.index == index; });
    if (it == all.end())
      throw std::invalid_argument(
          fmt::format("there is no device {}; there are {}, counted from 0", index, all.size()));
    if (!out.empty() && out.front().architecture != it->architecture)
      throw std::invalid_argument(fmt::format(
          "device {} is {} and device {} {}: a row would depend on which of them was free; take "
          "devices of one kind",
          out.front().index, out.front().architecture, index, it->architecture));
    out.push_back(*it);
  }
  return out;
}

bool CudaRun::is_fused() const {
  return options_.path != cuda::Path::cufft && cuda::has_fused_kernel(*front_.mel_plan());
}

std::string CudaRun::instruction_set() const {
  return fmt::format("{}, {}, {}", devices().front().architecture, is_fused() ? "fused" : "cufft",
                     OptionType<Operands>::echo(options_.operands).text());
}

namespace {

// The same for all chains of a run.
std::shared_ptr<cuda::DeviceBudget> memory_of(RunContext& run) {
  constexpr const char* kName = "cuda.memory";
  auto memory = std::const_pointer_cast<cuda::DeviceBudget>(
      run.shared.get_object<cuda::DeviceBudget>(kName));
  if (memory) return memory;
  memory = std::make_shared<cuda::DeviceBudget>(run.pinned_memory, run.device_memory);
  run.shared.set_object<cuda::DeviceBudget>(kName, memory);
  return memory;
}

}  // namespace

int CudaRun::default_h2d_slots() { return std::clamp(available_cpus() / 2, 1, 8); }

cuda::LaneSettings CudaRun::lane_settings(RunContext& run) const {
  cuda::LaneSettings out;
  for (const cuda::GpuInfo& g : devices()) out.devices.push_back(g.index);
  // A lane for each batch that is being packed, and two that are under way meanwhile.
  const int slots = options_.h2d.value_or(NodeGroup{}).concurrency.value_or(default_h2d_slots());
  const int devices = static_cast<int>(out.devices.size());
  out.streams = options_.streams.value_or((slots + devices - 1) / devices + 2);
  out.memory = memory_of(run);
  out.kernel.path = options_.path;
  out.kernel.operands = options_.operands.type;
  out.kernel.rows = front_.row_type();
  return out;
}

cuda::LaneSize CudaRun::size_of_lanes(const RunContext& run) const {
  // Of a few recordings: what is between them is alike.
  constexpr std::size_t kAsked = 64;
  const std::size_t count = run.source.source_count();
  const std::size_t step = std::max<std::size_t>(1, count / kAsked);
  std::size_t bytes = 0, asked = 0;
  for (std::size_t i = 0; i < count; i += step, ++asked)
    bytes += run.source.source_item(i).info.bytes;
  const std::size_t typical = asked > 0 ? bytes / asked / sizeof(std::int16_t) : 0;
  return lane_size(*front_.mel_plan(), grid_ ? std::optional(*grid_) : std::nullopt,
                   options_.accumulate.value_or(AccumulateOptions{}).bytes.count,
                   static_cast<std::int64_t>(typical), largest_block_);
}

void CudaRun::start(RunContext& run) {
  if (lanes_) return;
  const cuda::LaneSize size = size_of_lanes(run);
  try {
    lanes_ = std::make_unique<cuda::Lanes>(cuda::gpus(), front_.mel_plan(), lane_settings(run),
                                           size.sample_bytes, size.frames);
  } catch (const std::exception& e) {
    throw RunError(e.what());
  }
  monitor_.emplace(lanes_->devices(), cuda::gpus().patience());
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
              {"row_type", Value::scalar(to_text(front_.row_type()))},
              {"lanes", count(lanes_->count())},
              {"sample_bytes_of_lane", count(lanes_->size().sample_bytes)},
              {"frames_of_lane", count(lanes_->size().frames)},
              {"batches", Value::scalar(std::to_string(t.batches))},
              {"replayed", Value::scalar(std::to_string(t.replayed))},
              {"device_copy_in_seconds", seconds(t.copy_in)},
              {"device_mel_seconds", seconds(t.compute)},
              {"device_copy_out_seconds", seconds(t.copy_out)},
              {"bytes_to_device", Value::scalar(std::to_string(t.bytes_in))},
              {"bytes_from_device", Value::scalar(std::to_string(t.bytes_out))}};
  if (monitor_) add_uses(monitor_->finish(), summary_);
  monitor_.reset();
  lanes_.reset();
}

std::vector<std::pair<std::string, Value>> CudaRun::summary() const { return summary_; }

}  // namespace melflow
