#include "stages/device/cuda_report.h"

#include <fmt/format.h>

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
    std::vector<Value> pieces;
    for (const double mean : use.utilization_over_time)
      pieces.push_back(Value::scalar(fmt::format("{:.0f}", mean)));
    percent.set("samples_of_piece", count(use.samples_of_piece));
    percent.set("over_time", Value::list(std::move(pieces)));
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
    link.set("width", count(use.pcie_width));
    out.set("pcie", std::move(link));
  }
  if (!use.missing.empty()) out.set("not_known", words(use.missing));
  return out;
}

// Appends the use of the devices that NVML reported.
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

Value share(double part, double whole) {
  return Value::scalar(fmt::format("{:.1f}", 100 * part / whole));
}

// Returns the rate of bytes that crossed the link one way in `span` seconds.
Value link_value(std::size_t bytes, double span, double link) {
  const double rate = static_cast<double>(bytes) / span;
  Value out;
  out.set("gb_per_second", Value::scalar(fmt::format("{:.3f}", rate / 1e9)));
  if (link > 0) out.set("percent_of_link", share(rate, link));
  return out;
}

}  // namespace

double link_rate(unsigned generation, unsigned width) {
  // Per lane: 8 of 10 bits at 2.5 and 5 GT/s, 128 of 130 bits at 8 to 32, 242 of 256 bytes at 64.
  constexpr double kOfOne[] = {0, 0.25e9, 0.5e9, 0.9846e9, 1.9692e9, 3.9385e9, 7.5625e9};
  return generation < std::size(kOfOne) ? kOfOne[generation] * width : 0;
}

Value rates_value(int device, const cuda::SlotTimes& t, const cuda::DeviceUse* use) {
  Value out;
  out.set("device", Value::scalar(std::to_string(device)));
  out.set("batches", count(t.batches));
  out.set("files", count(t.files));
  out.set("seconds", seconds(t.span));
  if (t.span <= 0) return out;
  const double link = use != nullptr ? link_rate(use->pcie_generation, use->pcie_width) : 0;
  const auto rate = [&t](std::size_t n) {
    return Value::scalar(fmt::format("{:.0f}", static_cast<double>(n) / t.span));
  };
  out.set("files_per_second", rate(t.files));
  out.set("frames_per_second", rate(t.frames));
  out.set("to_device", link_value(t.bytes_in, t.span, link));
  out.set("from_device", link_value(t.bytes_out, t.span, link));
  out.set("copy_in_percent", share(t.copy_in, t.span));
  out.set("mel_percent", share(t.compute, t.span));
  out.set("copy_out_percent", share(t.copy_out, t.span));
  out.set("gaps_percent", share(t.idle, t.span));
  return out;
}

std::vector<std::pair<std::string, Value>> cuda_report(cuda::SlotPool& slots, NumberType rows,
                                                       const cuda::DeviceUses& uses) {
  const std::vector<cuda::SlotTimes> each = slots.times_of_devices();
  const std::vector<cuda::GpuInfo> devices = slots.devices();
  cuda::SlotTimes t;
  std::vector<Value> names, rates;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const cuda::GpuInfo& g = devices[i];
    t += each[i];
    names.push_back(Value::scalar(fmt::format("{}: {} ({})", g.index, g.name, g.architecture)));
    rates.push_back(
        rates_value(g.index, each[i], i < uses.devices.size() ? &uses.devices[i] : nullptr));
  }
  std::vector<std::pair<std::string, Value>> out{
      {"backend", Value::scalar("cuda")},
      {"devices", Value::list(std::move(names))},
      {"kernels", Value::scalar(slots.description())},
      {"row_type", Value::scalar(to_text(rows))},
      {"slots", count(slots.count())},
      {"sample_bytes_of_slot", count(slots.size().sample_bytes)},
      {"frames_of_slot", count(slots.size().frames)},
      {"batches", count(t.batches)},
      {"replayed", count(t.replayed)},
      {"device_copy_in_seconds", seconds(t.copy_in)},
      {"device_mel_seconds", seconds(t.compute)},
      {"device_copy_out_seconds", seconds(t.copy_out)},
      {"bytes_to_device", count(t.bytes_in)},
      {"bytes_from_device", count(t.bytes_out)},
      {"device_rates", Value::list(std::move(rates))}};
  std::vector<Value> failures;
  for (const std::string& why : slots.failures()) failures.push_back(words(why));
  if (!failures.empty()) out.emplace_back("device_failures", Value::list(std::move(failures)));
  add_uses(uses, out);
  return out;
}

}  // namespace melflow
