// mel: mel spectrogram rows on the CPU.
//
// In:  Batch of Windows.
// Out: MelBatch, one part for each part of the batch, float32 [rows, frames, columns].

#include <memory>
#include <mutex>
#include <vector>

#include "cuda/gpu.h"
#include "pipeline/registry.h"
#include "stages/front_end/mel_backend.h"
#include "stages/front_end/mel_front.h"
#include "stages/front_end/mel_windows.h"

namespace melflow {
namespace {

struct MelScratch {
  explicit MelScratch(MelKernel::Scratch k) : kernel(std::move(k)) {}
  MelKernel::Scratch kernel;
  WindowScratch windows;
};

class Mel final : public Transform<Batch, MelBatch> {
 public:
  explicit Mel(MelNodeOptions options)
      : front_(std::move(options.mel)), backend_(options.backend.backend) {}

  static std::vector<NodeSpec> expand(const NodeSpec& spec) { return mel_nodes(spec); }

  [[nodiscard]] StageTraits traits() const override {
    StageTraits t = Transform::traits();
    t.in_order = false;  // a part says itself which rows of its file it is
    return t;
  }

  [[nodiscard]] Facts demand(const Facts& below) const override { return front_.demand(below); }
  Facts plan(const Facts& given, const Facts&, PlanCheck& check) override {
    if (backend_ == MelBackend::cuda)
      check.error("backend", "cuda: " + cuda::gpus().why_none() + "; use backend: cpu, or auto");
    return front_.plan(given, check, backend_ == MelBackend::cuda ? "cuda" : "cpu",
                       std::string(MelKernel::instruction_set()));
  }
  // Which one auto took, and why.
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    std::string text = "cpu, " + std::string(MelKernel::instruction_set());
    if (backend_ == MelBackend::automatic) text += " (" + why_not_cuda() + ")";
    return {{"backend", Value::scalar(std::move(text))}};
  }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return front_.output_bound(input);
  }
  [[nodiscard]] std::optional<Value> settings() const override { return front_.settings(); }

  Result<std::shared_ptr<const MelBatch>> process(std::shared_ptr<const Batch> in,
                                                  ItemContext& context) const override {
    auto out = std::make_shared<MelBatch>();
    out->info = front_.info();
    out->parts.resize(in->parts.size());
    Lease scratch(*this);
    for (std::size_t i = 0; i < in->parts.size(); ++i) {
      if (context.item().origins->at(i).stream->failed()) continue;
      auto part = compute(*in->parts[i], i, *scratch, context);
      if (part)
        out->parts[i] = std::move(*part);
      else
        context.fail(i, std::move(part.error()));
    }
    return std::shared_ptr<const MelBatch>(std::move(out));
  }

 private:
  [[nodiscard]] std::string why_not_cuda() const {
    if (cuda::gpus().list().empty()) return cuda::gpus().why_none();
    if (front_.options().precision == MelOptions::Precision::float64)
      return "precision: double, which no device has";
    return cuda::gpus().why_no_cufft();
  }

  // Work space of whoever is computing now; kept between items.
  class Lease {
   public:
    explicit Lease(const Mel& mel) : mel_(mel) {
      const std::lock_guard lock(mel_.mutex_);
      if (!mel_.free_.empty()) {
        scratch_ = std::move(mel_.free_.back());
        mel_.free_.pop_back();
      }
      if (!scratch_) scratch_ = std::make_unique<MelScratch>(mel_.front_.kernel().make_scratch());
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      const std::lock_guard lock(mel_.mutex_);
      mel_.free_.push_back(std::move(scratch_));
    }
    MelScratch& operator*() const { return *scratch_; }

   private:
    const Mel& mel_;
    std::unique_ptr<MelScratch> scratch_;
  };

  Result<std::shared_ptr<const MelPart>> compute(const Windows& in, std::size_t part,
                                                 MelScratch& scratch, ItemContext& context) const {
    if (auto error = front_.refusal(in)) return std::move(*error);
    const std::uint64_t noise_key = front_.noise_key(part, context);
    auto out = std::make_shared<MelPart>();
    out->last = in.last;
    out->file = in.file;
    const bool int16 = in.samples.type == SampleType::int16;
    if (in.grid) {
      int16 ? windows<std::int16_t>(in, noise_key, scratch, context, *out)
            : windows<float>(in, noise_key, scratch, context, *out);
    } else {
      int16 ? whole<std::int16_t>(in, noise_key, scratch, context, *out)
            : whole<float>(in, noise_key, scratch, context, *out);
      if (out->row_count == 0 && in.last && out->first_row == 0) return front_.too_short(in);
    }
    if (auto error = front_.damage(in, *out)) return std::move(*error);
    return std::shared_ptr<const MelPart>(std::move(out));
  }

  template <class Sample>
  void windows(const Windows& in, std::uint64_t noise_key, MelScratch& scratch,
               ItemContext& context, MelPart& out) const {
    const MelKernel& kernel = front_.kernel();
    const std::size_t values = front_.info()->values_per_row();
    const std::int64_t frames = front_.mel_plan()->frames(in.grid->length);
    out.first_row = in.first_row;
    out.row_count = in.row_count;
    auto* rows = lease(static_cast<std::size_t>(in.row_count) * values, context, out);
    for_each_window<Sample>(in, noise_key, scratch.windows,
                            [&](const SignalView<Sample>& view, std::int64_t row, bool is_padded) {
                              kernel.add(view, 0, frames,
                                         rows + static_cast<std::size_t>(row) * values,
                                         scratch.kernel);
                              if (is_padded) kernel.flush(scratch.kernel);
                            });
    kernel.flush(scratch.kernel);
    front_.finish_windows(scratch.windows.same_as(), rows);
  }

  template <class Sample>
  void whole(const Windows& in, std::uint64_t noise_key, MelScratch& scratch, ItemContext& context,
             MelPart& out) const {
    front_.ready_frames(in, out);
    auto* rows = lease(static_cast<std::size_t>(out.row_count) * front_.info()->values_per_row(),
                       context, out);
    const SignalView<Sample> view{reinterpret_cast<const Sample*>(in.samples.data),
                                  in.begin,
                                  in.end(),
                                  in.last ? in.end() : -1,
                                  noise_key,
                                  0};
    front_.kernel().frames(view, out.first_row, out.row_count, rows, scratch.kernel);
    front_.finish_whole(in, rows, out);
  }

  static float* lease(std::size_t values, ItemContext& context, MelPart& out) {
    auto buffer = std::make_shared<Buffer>(context.run().pool.lease(values * sizeof(float)));
    auto* data = buffer->template as<float>();
    out.data = std::move(buffer);
    return data;
  }

  MelFront front_;
  MelBackend backend_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<MelScratch>> free_;
};

const RegisterStage<Mel, MelNodeOptions> registered{
    "mel", "Mel spectrogram: every option of librosa, torchaudio, Kaldi, Whisper, NeMo and others.",
    true};

}  // namespace
}  // namespace melflow
