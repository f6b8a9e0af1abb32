// cuda_mel: mel spectrogram rows on GPUs. cuda_h2d gives a device all of the work at once; an item
// is here until its rows are back in page-locked memory.
//
// In:  DeviceBatch.
// Out: PinnedRows.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/completions.h"
#include "cuda/gpu.h"
#include "cuda/slot.h"
#include "pipeline/stage/registry.h"
#include "pipeline/stage/stage_kinds.h"
#include "stages/device/cuda_run.h"
#include "stages/facts.h"

namespace melflow {
namespace {

// Driven by one thread.
class SlotEngine final : public Engine {
 public:
  void begin(void* tag, const Item& item, const ItemContext&) override {
    auto batch = payload_of<DeviceBatch>(item)->batch;
    cuda::Slot* slot = batch->slot();
    // Each batch gets a new number, so that a late answer cannot be mistaken for another batch's.
    auto* number = reinterpret_cast<void*>(++last_number_);
    under_way_.emplace(number, UnderWay{tag, std::move(batch)});
    if (slot == nullptr)
      finished_.post(number);
    else
      slot->when_done(finished_, number);
  }

  void collect(std::vector<Done>& done) override {
    std::vector<void*> numbers;
    finished_.wait(numbers, kPeriod);
    for (void* number : numbers) {
      const auto it = under_way_.find(number);
      if (it == under_way_.end()) continue;
      auto out = std::make_shared<PinnedRows>();
      out->batch = std::move(it->second.batch);
      done.push_back({it->second.tag,
                      emission<PinnedRows>(std::shared_ptr<const PinnedRows>(std::move(out)))});
      under_way_.erase(it);
    }
    // A broken device makes no callback, so slots are checked from time to time.
    if (const auto now = Clock::now(); now - asked_ > std::chrono::duration<double>(kPeriod)) {
      asked_ = now;
      fail_broken(done);
    }
  }

  void wake() override { finished_.wake(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kPeriod = 0.25;  // [s]
  struct UnderWay {
    void* tag = nullptr;
    std::shared_ptr<CudaBatch> batch;
  };

  void fail_broken(std::vector<Done>& done) {
    for (auto it = under_way_.begin(); it != under_way_.end();) {
      try {
        if (cuda::Slot* slot = it->second.batch->slot()) slot->check();
        ++it;
      } catch (const std::exception& e) {
        done.push_back({it->second.tag, ItemError::failed(e.what())});
        it = under_way_.erase(it);
      }
    }
  }

  cuda::Completions finished_;
  std::uintptr_t last_number_ = 0;
  std::map<void*, UnderWay> under_way_;
  Clock::time_point asked_ = Clock::now();
};

class CudaMel final : public Transform<DeviceBatch, PinnedRows>,
                      public HasEngine,
                      public KeepsFiles {
 public:
  static constexpr const char* kFeatureStage = "mel";

  explicit CudaMel(const MelNodeOptions& options) : run_(std::make_shared<CudaRun>(options)) {
    traits_.order = BlockOrder::any;
    traits_.lends = true;
  }

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = run_->front().require(below);
    above.set(requirement::kCudaRun, run_);
    return above;
  }
  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    melflow::check(run_->options(), check);
    const bool has_devices = run_->is_automatic() || check_devices(check);
    Properties out = has_devices ? run_->plan(given, check) : given;
    if (has_devices && run_->front().is_planned()) {
      check_path(check);
      run_->front().give_required_rows(required);
    }
    out.set(property::kCudaRun, run_);  // else the nodes downstream would report errors, too
    return out;
  }
  void keep_files(Value& settings) const override { run_->front().keep_files(settings); }
  // Other operands are other features.
  [[nodiscard]] std::optional<Value> settings() const override {
    auto out = run_->front().settings();
    if (out && run_->options().operands.type != cuda::NumberType::float32)
      out->set("operands", OptionType<Operands>::echo(run_->options().operands));
    return out;
  }
  [[nodiscard]] StageResources resources() const override {
    return {.passes_on = true, .default_concurrency = 64};  // more than there are slots
  }
  [[nodiscard]] std::unique_ptr<Engine> engine(int) override {
    return std::make_unique<SlotEngine>();
  }

  void start(RunContext& run) override { run_->start(run); }
  void finish(RunContext&, Ending) override { run_->finish(); }
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    return run_->summary();
  }

  Result<std::shared_ptr<const PinnedRows>> process(std::shared_ptr<const DeviceBatch> in,
                                                    ItemContext&) const override {
    auto out = std::make_shared<PinnedRows>();
    out->batch = in->batch;
    return std::shared_ptr<const PinnedRows>(std::move(out));
  }

 private:
  // Devices that the options ask for must exist. Those of an automatic choice are looked for while
  // files are read.
  [[nodiscard]] bool check_devices(PlanCheck& check) const {
    if (cuda::gpus().list().empty()) {
      check.error("", "cuda: " + cuda::gpus().why_none() + "; use backend: cpu");
      return false;
    }
    std::vector<cuda::Opening::LeftOut> left_out;
    (void)CudaRun::choose(cuda::gpus(), run_->options(), left_out);
    const bool is_any = run_->options().devices.indices.empty();
    for (const auto& out : left_out)
      is_any ? check.warning("devices", out.why + "; it is not used")
             : check.error("devices", out.why);
    return is_any || left_out.empty();
  }

  void check_path(PlanCheck& check) const {
    const MelBackendOptions& o = run_->options();
    if (o.path == cuda::Path::fused && !run_->is_fused())
      check.error("path",
                  "there is no fused kernel for this n_fft, only for 256, 400, 512, 1024 and 2048; "
                  "use cufft or auto");
    else if (!run_->is_fused() && o.operands.type != cuda::NumberType::float32)
      check.error("operands", "only the fused kernel has others than fp32");
    if (run_->is_fused()) return;
    if (const std::string why = cuda::gpus().why_no_cufft(); !why.empty())
      check.error("path", why + "; or use backend: cpu");
  }

  std::shared_ptr<CudaRun> run_;
};

const RegisterStage<CudaMel, MelNodeOptions> register_cuda_mel{
    "cuda_mel",
    "Mel spectrogram on CUDA devices; write mel with backend: cuda or auto, which inserts this "
    "stage and the other cuda stages around it.",
    true};

}  // namespace
}  // namespace melflow
