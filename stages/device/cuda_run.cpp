#include "stages/device/cuda_run.h"
#include "stages/device/kernel_front_end.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "cuda/gpu.h"
#include "pipeline/base/cpu.h"
#include "stages/device/cuda_report.h"
#include "stages/device/slot_load.h"
#include "stages/facts.h"
#include "stages/manifest.h"
#include "stages/run_task.h"

namespace melflow {

CudaRun::CudaRun(const MelNodeOptions& options) : front_(options.mel), options_(options.backend) {}

std::vector<cuda::GpuInfo> CudaRun::choose(const cuda::Gpus& gpus, const MelBackendOptions& options,
                                           std::vector<cuda::Opening::LeftOut>& left_out) {
  const std::vector<cuda::GpuInfo> all = gpus.list();
  const std::map<int, std::string> unusable = gpus.unusable();
  std::vector<cuda::GpuInfo> out;
  if (all.empty()) {
    left_out.push_back({-1, gpus.why_none()});
    return out;
  }
  if (options.devices.indices.empty()) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(out), [&all](const cuda::GpuInfo& g) {
      return g.architecture == all.front().architecture;
    });
    for (const auto& [index, why] : unusable) left_out.push_back({index, why});
    return out;
  }
  for (const int index : options.devices.indices) {
    const auto it = std::find_if(all.begin(), all.end(),
                                 [index](const cuda::GpuInfo& g) { return g.index == index; });
    if (const auto old = unusable.find(index); old != unusable.end()) {
      left_out.push_back({index, old->second});
    } else if (it == all.end()) {
      left_out.push_back({index, fmt::format("there is no device {}; there are {}, counted from 0",
                                             index, all.size() + unusable.size())});
    } else if (!out.empty() && out.front().architecture != it->architecture) {
      left_out.push_back(
          {index,
           fmt::format("device {} is {} and device {} {}: a row would depend on which of them was "
                       "free; take devices of one kind",
                       out.front().index, out.front().architecture, index, it->architecture)});
    } else {
      out.push_back(*it);
    }
  }
  return out;
}

Properties CudaRun::plan(const Properties& given, PlanCheck& check) {
  grid_ = given.get(property::kWindowGrid);
  given_ = given.get_or(property::kFullBatch, FullBatch{1, AccumulateOptions::kUsualBytes});
  Properties out = front_.plan(given, check, {is_automatic() ? "auto" : "cuda", ""});
  is_fused_ = front_.is_planned() && options_.path != cuda::Path::cufft &&
              cuda::has_fused_kernel(kernel_front_end(*front_.mel_plan()));
  return out;
}

namespace {

// All chains of a run share one budget.
std::shared_ptr<cuda::DeviceBudget> memory_of(RunContext& run) {
  return run.services.find_or_make<cuda::DeviceBudget>(run.settings.pinned_memory,
                                                       run.settings.device_memory);
}

}  // namespace

int CudaRun::default_h2d_concurrency() { return std::clamp(available_cpus() / 2, 1, 8); }

cuda::SlotSettings CudaRun::slot_settings(RunContext& run) const {
  cuda::SlotSettings out;
  out.memory = memory_of(run);
  out.graphs = options_.graphs;
  out.patience = options_.device_timeout;
  out.kernel.path = options_.path;
  out.kernel.operands = options_.operands.type;
  out.kernel.rows = front_.row_type();
  return out;
}

// Estimates two bytes of a file per sample: compressed files have more samples, but decoding these
// takes far longer than computing rows. Sizes are taken from a sample of the files, to save time.
CudaRun::Corpus CudaRun::look_at(const RunContext& run) {
  constexpr std::size_t kAsked = 1024;
  const std::size_t count = run.source.count();
  const std::size_t step = std::max<std::size_t>(1, count / kAsked);
  double bytes = 0, asked = 0;
  for (std::size_t i = 0; i < count; i += step, ++asked)
    bytes += static_cast<double>(run.source.item(i).info.bytes);
  const auto files = static_cast<double>(count);
  return {files, asked > 0 ? bytes / asked * files / sizeof(std::int16_t) : 0};
}

void CudaRun::start(RunContext& run) {
  if (std::exchange(has_started_, true)) return;
  front_.start(run);
  const Corpus corpus = look_at(run);
  constexpr double kMostForHost = 2 << 20, kBatchesOfWorker = 16;
  host_batch_bytes_ = static_cast<std::size_t>(std::min(
      kMostForHost, corpus.samples * sizeof(std::int16_t) / (run.workers * kBatchesOfWorker)));
  set_splits(run);
  if (is_automatic()) {
    const std::string why =
        why_on_cpu(device_gain(*front_.mel_plan(), grid_, corpus.files, corpus.samples),
                   run.workers, options_.auto_from);
    if (!why.empty()) return use_host(why);
  }
  open(run, corpus);
  // An update has to say whether its new rows are computed as the others were.
  if (update_of(run) != Update::none) (void)slots(run);
}

// The size of a batch for a device, of files that have `typical` samples of 16 bits.
std::size_t CudaRun::batch_bytes(double typical) const {
  const AccumulateOptions of = options_.accumulate.value_or(AccumulateOptions{});
  if (!of.batches) return of.bytes.value_or(Bytes{AccumulateOptions::kUsualBytes}).count;
  const double each =
      std::min(static_cast<double>(given_.bytes), given_.files * typical * sizeof(std::int16_t));
  return static_cast<std::size_t>(
      std::clamp(*of.batches * each, 4096.0, AccumulateOptions::kMostBytes));
}

void CudaRun::open(RunContext& run, const Corpus& corpus) {
  const double typical = corpus.files > 0 ? corpus.samples / corpus.files : 0;
  const cuda::SlotSize size = slot_size(*front_.mel_plan(), grid_, batch_bytes(typical),
                                        static_cast<std::int64_t>(typical), largest_block_);
  // The thread that calls this may outlive the run when a driver hangs, so it copies all it needs.
  const cuda::Gpus& gpus = cuda::gpus();
  const auto choice = [&gpus, options = options_](std::vector<cuda::Opening::LeftOut>& left_out) {
    std::vector<int> indices;
    for (const cuda::GpuInfo& g : choose(gpus, options, left_out)) indices.push_back(g.index);
    // With devices: all the plan has already warned of unused devices.
    if (options.backend == MelBackend::cuda && options.devices.indices.empty()) left_out.clear();
    return indices;
  };
  // A slot for each batch that is being packed, and two for batches in flight meanwhile.
  const int packing =
      options_.h2d.value_or(NodeGroup{}).concurrency.value_or(default_h2d_concurrency());
  const auto slots = [packing, wanted = options_.slots](std::size_t devices) {
    const int of = static_cast<int>(devices);
    return wanted.value_or((packing + of - 1) / of + 2);
  };
  opening_ = std::make_unique<cuda::Opening>(
      cuda::gpus(), std::make_shared<const cuda::FrontEnd>(kernel_front_end(*front_.mel_plan())),
      slot_settings(run), size, choice, slots);
}

void CudaRun::set_splits(RunContext& run) {
  if (options_.devices.of_splits.empty()) return;
  const auto* listed = manifest_source(run);
  std::string unknown;
  split_devices_ = SplitDevices(listed != nullptr ? &listed->manifest() : nullptr,
                                options_.devices.of_splits, unknown);
  if (!unknown.empty()) run.warn("mel.devices: " + unknown);
}

cuda::SlotPool* CudaRun::slots(RunContext& run) {
  const std::lock_guard lock(mutex_);
  if (!is_settled_) settle(run);
  if (!refusal_.empty()) throw RunError(refusal_);
  return slots_.get();
}

void CudaRun::settle(RunContext& run) {
  cuda::Opening::Result result = opening_->wait();
  is_settled_ = true;
  std::string all;
  for (const cuda::Opening::LeftOut& out : result.left_out) {
    left_out_.push_back(out.index < 0 ? out.why : fmt::format("device {}: {}", out.index, out.why));
    all += (all.empty() ? "" : "; ") + left_out_.back();
  }
  if (!is_automatic() && !left_out_.empty()) {
    refusal_ = fmt::format(
        "mel: backend: cuda: {}; exclude it (devices), or use backend: auto or cpu", all);
    return;
  }
  if (!result.slots) {
    run.warn("mel: backend: auto has no device, and rows are the processor's: " + all);
    return use_host("auto: " + all);
  }
  for (const std::string& why : left_out_) run.warn("mel: backend: auto goes on without " + why);
  use_slots(std::move(result.slots));
}

void CudaRun::use_slots(std::unique_ptr<cuda::SlotPool> slots) {
  slots_ = std::move(slots);
  front_.set_computed_by(
      {"cuda", fmt::format("{}, {}, {}", slots_->devices().front().architecture,
                           is_fused() ? "fused" : "cufft",
                           OptionType<Operands>::echo(options_.operands).text())});
  monitor_.emplace(slots_->devices(), cuda::gpus().patience());
}

void CudaRun::use_host(const std::string& why) {
  is_settled_ = true;
  const std::string instructions(chosen_instruction_set());
  front_.give_float32();
  front_.set_computed_by({"cpu", instructions});
  summary_ = {{"backend", Value::scalar(fmt::format("cpu, {} ({})", instructions, why), {}, true)}};
  is_on_host_ = true;
}

void CudaRun::finish() {
  opening_.reset();
  if (!is_settled_)
    summary_ = {{"backend", Value::scalar("cuda, which no batch came to", {}, true)}};
  if (!slots_) return;
  const cuda::DeviceUses uses = monitor_->finish();
  monitor_.reset();
  summary_ = cuda_report(*slots_, front_.row_type(), uses);
  slots_.reset();
}

}  // namespace melflow
