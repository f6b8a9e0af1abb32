// mel: mel spectrogram rows on the CPU.
//
// In:  Batch of Windows.
// Out: MelBatch, one part for each part of the batch, float32 [rows, frames, bands].

#include <algorithm>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

#include "pipeline/registry.h"
#include "stages/items.h"
#include "stages/mel_options.h"

namespace melflow {
namespace {

class MelScratch {
 public:
  explicit MelScratch(MelKernel::Scratch kernel) : kernel_(std::move(kernel)) {}
  MelKernel::Scratch& kernel() { return kernel_; }
  std::vector<std::int64_t>& row_at() { return row_at_; }
  std::vector<std::byte>& padded() { return padded_; }

 private:
  MelKernel::Scratch kernel_;
  std::vector<std::int64_t> row_at_;  // by place in the block: the row computed there, or -1
  std::vector<std::byte> padded_;     // a window that reaches over the end
};

class Mel final : public Transform<Batch, MelBatch> {
 public:
  explicit Mel(MelStageOptions options) : options_(std::move(options)) {
    options_.mel = options_.resolved();
  }

  [[nodiscard]] StageTraits traits() const override {
    StageTraits t = Transform::traits();
    t.in_order = false;  // a part says itself which rows of its file it is
    return t;
  }

  [[nodiscard]] Facts demand(const Facts& below) const override {
    Facts above = below;
    if (options_.sample_rate) above.set("sample_rate", *options_.sample_rate);
    // Frame geometry depends neither on the rate nor on the band edges, which may not be known yet.
    MelOptions geometry = options_.mel;
    geometry.fmin = 0;
    geometry.fmax.reset();
    if (check(geometry).empty())
      above.set("context", static_cast<double>(MelPlan(geometry).context()));
    return above;
  }

  Facts plan(const Facts& given, const Facts&, PlanCheck& check_plan) override {
    const auto given_rate = given.get("sample_rate");
    if (!options_.sample_rate && !given_rate) {
      check_plan.error("", "'sample_rate' is missing: which rate do the recordings have? (A "
                           "resample stage before it would settle it, too)");
      return given;
    }
    if (given_rate && options_.sample_rate && *given_rate != *options_.sample_rate)
      check_plan.error("sample_rate", fmt::format("{} Hz, but what arrives has {} Hz",
                                                  *options_.sample_rate, *given_rate));
    if (!options_.sample_rate) options_.sample_rate = static_cast<int>(*given_rate);
    options_.mel.sample_rate = *options_.sample_rate;
    const auto problems = check(options_.mel);
    for (const MelOptionProblem& p : problems) check_plan.error(p.option, p.message);
    if (!problems.empty()) return given;
    plan_ = std::make_shared<MelPlan>(options_.mel);
    kernel_ = std::make_unique<MelKernel>(plan_);
    finish_ = UnitFinish::from(options_.mel);
    if (plan_->empty_bands() > 0)
      check_plan.warning("n_mels",
                         fmt::format("{} of {} bands are so narrow that no frequency of the {}-point "
                                     "transform falls into them; they stay at the floor",
                                     plan_->empty_bands(), plan_->n_mels(), plan_->n_fft()));
    window_ = static_cast<std::int64_t>(given.get_or("window", 0));
    rows_per_sample_ = given.get_or("rows_per_sample", 0);
    rows_extra_ = given.get_or("rows_extra", 0);
    if (window_ > 0 && plan_->frames(window_) == 0)
      check_plan.error("n_fft", fmt::format("a window of {} samples is shorter than one frame of {}",
                                            window_, plan_->n_fft()));
    describe();
    Facts out = given;
    out.set_object(FeatureInfo::kFact, std::shared_ptr<const FeatureInfo>(info_));
    return out;
  }

  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t) const override;

  Result<std::shared_ptr<const MelBatch>> process(std::shared_ptr<const Batch> in,
                                                  ItemContext& context) const override {
    auto out = std::make_shared<MelBatch>();
    out->info = info_;
    out->parts.resize(in->parts.size());
    Lease scratch(*this);
    for (std::size_t i = 0; i < in->parts.size(); ++i) {
      if (context.item().origins->at(i).stream->failed()) continue;
      auto part = compute(*in->parts[i], *scratch, context);
      if (part)
        out->parts[i] = std::move(*part);
      else
        context.fail(i, std::move(part.error()));
    }
    return std::shared_ptr<const MelBatch>(std::move(out));
  }

 private:
  // Work space of whoever is computing now; kept between items.
  class Lease {
   public:
    explicit Lease(const Mel& mel) : mel_(mel) {
      const std::lock_guard lock(mel_.mutex_);
      if (!mel_.free_.empty()) {
        scratch_ = std::move(mel_.free_.back());
        mel_.free_.pop_back();
      }
      if (!scratch_) scratch_ = std::make_unique<MelScratch>(mel_.kernel_->make_scratch());
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

  void describe();

  Result<std::shared_ptr<const MelPart>> compute(const Windows& in, MelScratch& scratch,
                                                 ItemContext& context) const {
    if (in.sample_rate != options_.mel.sample_rate)
      return ItemError::failed(fmt::format(
          "is sampled at {} Hz, mel.sample_rate is {}; put a resample stage before, or leave such "
          "files out",
          in.sample_rate, options_.mel.sample_rate));
    auto out = std::make_shared<MelPart>();
    out->last = in.last;
    out->file = in.file;
    const bool int16 = in.samples.type == SampleType::int16;
    if (in.grid) {
      int16 ? windows<std::int16_t>(in, scratch, context, *out)
            : windows<float>(in, scratch, context, *out);
    } else {
      int16 ? whole<std::int16_t>(in, scratch, context, *out)
            : whole<float>(in, scratch, context, *out);
      if (out->row_count == 0 && in.last && out->first_row == 0)
        return ItemError::skipped(
            fmt::format("shorter than one frame: {} samples of {}", in.end(), plan_->n_fft()));
    }
    return std::shared_ptr<const MelPart>(std::move(out));
  }

  // Every window is a unit of its own. Windows of the two-stage segmentation fall on each other: a
  // row whose samples are those of an earlier row is copied from it.
  template <class Sample>
  void windows(const Windows& in, MelScratch& scratch, ItemContext& context, MelPart& out) const {
    const WindowGrid& g = *in.grid;
    const std::size_t values = info_->values_per_row();
    const std::int64_t frames = plan_->frames(g.length);
    out.first_row = in.first_row;
    out.row_count = in.row_count;
    out.data = context.run().pool.lease(static_cast<std::size_t>(in.row_count) * values *
                                        sizeof(float));
    auto* rows = out.data.as<float>();
    const auto* samples = reinterpret_cast<const Sample*>(in.samples.data);
    const bool overlap = g.per_long > 1;
    std::vector<std::int64_t>& row_at = scratch.row_at();
    if (overlap) row_at.assign(static_cast<std::size_t>(in.samples.count) + 1, -1);
    for (std::int64_t r = 0; r < in.row_count; ++r) {
      // With a padded tail short windows may begin behind the end: they are all the same silence.
      const std::int64_t at = std::min(g.start(in.first_row + r) - in.begin, in.samples.count);
      float* row = rows + static_cast<std::size_t>(r) * values;
      if (overlap) {
        std::int64_t& same = row_at[static_cast<std::size_t>(at)];
        if (same >= 0) {
          std::memcpy(row, rows + static_cast<std::size_t>(same) * values, values * sizeof(float));
          continue;
        }
        same = r;
      }
      SignalView<Sample> view{samples + at, 0, g.length, g.length};
      if (at + g.length > in.samples.count) view.data = padded<Sample>(in, at, g.length, scratch);
      kernel_->frames(view, 0, frames, row, scratch.kernel());
      if (finish_.needed()) finish_.apply({row, values}, max_value({row, values}));
    }
  }

  // A window that reaches over the end of the recording, with silence behind it.
  template <class Sample>
  static const Sample* padded(const Windows& in, std::int64_t at, std::int64_t length,
                              MelScratch& scratch) {
    std::vector<std::byte>& bytes = scratch.padded();
    bytes.assign(static_cast<std::size_t>(length) * sizeof(Sample), std::byte{0});
    const std::int64_t have = in.samples.count - at;
    if (have > 0)
      std::memcpy(bytes.data(), in.samples.data + static_cast<std::size_t>(at) * sizeof(Sample),
                  static_cast<std::size_t>(have) * sizeof(Sample));
    return reinterpret_cast<const Sample*>(bytes.data());
  }

  // The frames that this block makes possible, or at the end all that are left.
  template <class Sample>
  void whole(const Windows& in, MelScratch& scratch, ItemContext& context, MelPart& out) const {
    const std::int64_t end = in.end();
    const std::int64_t from = in.first ? 0 : plan_->frames_ready(in.fresh);
    const std::int64_t to = in.last ? plan_->frames(end) : plan_->frames_ready(end);
    out.first_row = from;
    out.row_count = std::max<std::int64_t>(0, to - from);
    const std::size_t count = static_cast<std::size_t>(out.row_count) * info_->values_per_row();
    out.data = context.run().pool.lease(count * sizeof(float));
    auto* rows = out.data.as<float>();
    const SignalView<Sample> view{reinterpret_cast<const Sample*>(in.samples.data), in.begin, end,
                                  in.last ? end : -1};
    kernel_->frames(view, from, out.row_count, rows, scratch.kernel());
    if (!finish_.needed()) return;
    out.maximum = max_value({rows, count});
    if (in.first && in.last)
      finish_.apply({rows, count}, out.maximum);
    else
      out.pending = finish_;
  }

  MelStageOptions options_;
  std::shared_ptr<const MelPlan> plan_;
  std::unique_ptr<MelKernel> kernel_;
  std::shared_ptr<FeatureInfo> info_;
  UnitFinish finish_;
  std::int64_t window_ = 0;  // samples of a row; 0: rows are frames
  double rows_per_sample_ = 0, rows_extra_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<MelScratch>> free_;
};

// Of the bytes that enter a stage only those of one block's samples count, and a sample takes at
// least two.
std::size_t Mel::output_bound(const SourceInfo&, std::size_t input) const {
  const auto samples = static_cast<double>(input) / 2;
  const double rows = window_ > 0 ? samples * rows_per_sample_ + rows_extra_
                                  : samples / plan_->hop() + plan_->n_fft() / plan_->hop() + 2;
  return BufferPool::rounded(static_cast<std::size_t>(rows) * info_->values_per_row() *
                             sizeof(float));
}

void Mel::describe() {
  const MelOptions& o = plan_->options();
  info_ = std::make_shared<FeatureInfo>();
  info_->frames = window_ > 0 ? static_cast<int>(plan_->frames(window_)) : 0;
  info_->bands = o.n_mels;
  for (const MelBand& b : plan_->bands()) info_->band_hz.push_back(b.centre_hz);
  const std::string quantity = o.power == 2   ? "power"
                               : o.power == 1 ? "amplitude"
                                              : fmt::format("amplitude^{}", o.power);
  switch (o.log) {
    case MelOptions::Log::none: info_->unit = quantity; break;
    case MelOptions::Log::ln: info_->unit = "ln " + quantity; break;
    case MelOptions::Log::log10: info_->unit = "log10 " + quantity; break;
    case MelOptions::Log::db: info_->unit = "dB"; break;
  }
  info_->sample_rate = o.sample_rate;
  info_->n_fft = o.n_fft;
  info_->hop = plan_->hop();
  info_->backend = "cpu";
  info_->instruction_set = MelKernel::instruction_set();
}

const RegisterStage<Mel, MelStageOptions> registered{
    "mel", "Mel spectrogram, with the parameters of librosa's and torchaudio's MelSpectrogram.",
    true};

}  // namespace
}  // namespace melflow
