// mel: mel spectrogram rows on the CPU.
//
// In:  Batch of Windows.
// Out: MelBatch, one part for each part of the batch, float32 [rows, frames, columns].

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>

#include <fmt/format.h>
#include <xxhash.h>

#include "pipeline/registry.h"
#include "stages/items.h"
#include "stages/mel_kernel.h"
#include "stages/mel_stage_options.h"

namespace melflow {
namespace {

class MelScratch {
 public:
  explicit MelScratch(MelKernel::Scratch kernel) : kernel_(std::move(kernel)) {}
  MelKernel::Scratch& kernel() { return kernel_; }
  std::vector<std::int64_t>& row_at() { return row_at_; }
  std::vector<std::int64_t>& same_as() { return same_as_; }
  std::vector<std::byte>& padded() { return padded_; }
  // Of the file at hand.
  [[nodiscard]] std::uint64_t noise_key() const { return noise_key_; }
  void set_noise_key(std::uint64_t key) { noise_key_ = key; }

 private:
  MelKernel::Scratch kernel_;
  std::vector<std::int64_t> row_at_;   // by place, in steps: the row computed there, or -1
  std::vector<std::int64_t> same_as_;  // by row: the earlier row with the same samples, or -1
  std::vector<std::byte> padded_;      // a window that reaches over the end
  std::uint64_t noise_key_ = 0;
};

class Mel final : public Transform<Batch, MelBatch> {
 public:
  explicit Mel(MelStageOptions options)
      : options_(std::move(options)), preset_text_(options_.preset_text()) {
    options_.mel = options_.resolved();
  }

  [[nodiscard]] StageTraits traits() const override {
    StageTraits t = Transform::traits();
    t.in_order = false;  // a part says itself which rows of its file it is
    return t;
  }

  [[nodiscard]] Facts demand(const Facts& below) const override {
    Facts above = below;
    if (options_.sample_rate) above.set_exact("sample_rate", *options_.sample_rate);
    // Frame geometry depends neither on the rate nor on the band edges, which may not be known yet.
    MelOptions geometry = options_.mel;
    geometry.fmin = 0;
    geometry.fmax.reset();
    geometry.vtln_warp = 1;
    if (check(geometry).empty())
      above.set("context", static_cast<double>(MelPlan(geometry).context()));
    return above;
  }

  Facts plan(const Facts& given, const Facts&, PlanCheck& check_plan) override {
    const auto given_rate = given.get("sample_rate");
    if (!options_.sample_rate && !given_rate) {
      check_plan.error("",
                       "'sample_rate' is missing: which rate do the recordings have? (A "
                       "resample stage before it would settle it, too)");
      return given;
    }
    if (given_rate && options_.sample_rate && *given_rate != *options_.sample_rate)
      check_plan.error(
          "sample_rate",
          fmt::format("{} Hz{}, but what arrives has {} Hz; resample to {} Hz, or change "
                      "this",
                      *options_.sample_rate, by_preset(), *given_rate, *options_.sample_rate));
    if (!options_.sample_rate) options_.sample_rate = static_cast<int>(*given_rate);
    options_.mel.sample_rate = *options_.sample_rate;
    const auto problems = check(options_.mel);
    for (const MelOptionProblem& p : problems)
      check_plan.error(p.option, p.message + options_.origin_of(p.option));
    if (!problems.empty()) return given;
    plan_ = std::make_shared<MelPlan>(options_.mel);
    kernel_ = std::make_unique<MelKernel>(plan_);
    finish_ = std::make_shared<UnitFinish>(UnitFinish::of_mel(options_.mel));
    if (plan_->empty_bands() > 0)
      check_plan.warning(
          "n_mels", fmt::format("{} of {} bands are so narrow that no frequency of the {}-point "
                                "transform falls into them; they stay at the floor",
                                plan_->empty_bands(), plan_->n_mels(), plan_->n_fft()));
    if (const std::string remark = options_.preset_remark(); !remark.empty())
      check_plan.warning("preset", remark);
    window_ = static_cast<std::int64_t>(given.get_or("window", 0));
    rows_per_sample_ = given.get_or("rows_per_sample", 0);
    rows_extra_ = given.get_or("rows_extra", 0);
    if (window_ > 0 && plan_->frames(window_) == 0)
      check_plan.error(
          "n_fft", fmt::format("a window of {} samples is shorter than one frame of {}", window_,
                               plan_->frame_length()));
    describe();
    Facts out = given;
    out.set_object(FeatureInfo::kFact, std::shared_ptr<const FeatureInfo>(info_));
    return out;
  }

  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t) const override;
  [[nodiscard]] std::optional<Value> settings() const override {
    return plan_ ? std::optional(MelStageOptions::canonical(options_.mel)) : std::nullopt;
  }

  Result<std::shared_ptr<const MelBatch>> process(std::shared_ptr<const Batch> in,
                                                  ItemContext& context) const override {
    auto out = std::make_shared<MelBatch>();
    out->info = info_;
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

  // Of a recording that gives a frame.
  [[nodiscard]] std::int64_t least_samples() const {
    std::int64_t low = 0, high = 1;
    while (plan_->frames(high) == 0) high *= 2;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (plan_->frames(middle) == 0 ? low : high) = middle;
    }
    return high;
  }

  [[nodiscard]] std::string by_preset() const {
    return options_.preset.preset == nullptr
               ? ""
               : fmt::format(" (preset {})", options_.preset.preset->name);
  }

  // Of the file's name below the root, so that its noise does not depend on what else is there.
  [[nodiscard]] std::uint64_t noise_key(std::size_t part, ItemContext& context) const {
    if (options_.mel.dither == 0) return 0;
    const std::string name = context.run().source.source_name(context.origin(part).stream->index());
    return XXH3_64bits(name.data(), name.size());
  }

  Result<std::shared_ptr<const MelPart>> compute(const Windows& in, std::size_t part,
                                                 MelScratch& scratch, ItemContext& context) const {
    if (in.sample_rate != options_.mel.sample_rate)
      return ItemError::failed(
          fmt::format("is sampled at {} Hz, mel.sample_rate is {}{}; put a resample stage before, "
                      "or leave such "
                      "files out",
                      in.sample_rate, options_.mel.sample_rate, by_preset()));
    scratch.set_noise_key(noise_key(part, context));
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
            fmt::format("shorter than one frame: {} samples of {}", in.end(), least_samples()));
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
    auto* rows = lease(static_cast<std::size_t>(in.row_count) * values, context, out);
    const auto* samples = reinterpret_cast<const Sample*>(in.samples.data);
    const bool overlap = g.per_long > 1;
    std::vector<std::int64_t>& row_at = scratch.row_at();
    std::vector<std::int64_t>& same_as = scratch.same_as();
    same_as.assign(static_cast<std::size_t>(in.row_count), -1);
    // Windows start at multiples of `step` from the block's first one; what starts behind the end
    // of a recording with a padded tail is all the same silence.
    const std::int64_t step = std::gcd(g.long_hop, g.short_hop);
    const std::int64_t base = in.first_row / g.per_long * g.long_hop;
    const std::int64_t behind = std::max<std::int64_t>(0, in.end() - base + step - 1);
    if (overlap) row_at.assign(static_cast<std::size_t>(behind / step) + 1, -1);
    for (std::int64_t r = 0; r < in.row_count; ++r) {
      const std::int64_t start = g.start(in.first_row + r);
      const std::int64_t at = std::min(start - in.begin, in.samples.count);
      if (overlap) {
        std::int64_t& first =
            row_at[static_cast<std::size_t>(std::min(start - base, behind) / step)];
        if (first >= 0) {
          same_as[static_cast<std::size_t>(r)] = first;
          continue;
        }
        first = r;
      }
      SignalView<Sample> view{samples + at, 0, g.length, g.length, scratch.noise_key(),
                              in.begin + at};
      const bool is_padded = at + g.length > in.samples.count;
      if (is_padded) view.data = padded<Sample>(in, at, g.length, scratch);
      kernel_->add(view, 0, frames, rows + static_cast<std::size_t>(r) * values, scratch.kernel());
      if (is_padded) kernel_->flush(scratch.kernel());
    }
    kernel_->flush(scratch.kernel());
    for (std::int64_t r = 0; r < in.row_count; ++r) {
      float* row = rows + static_cast<std::size_t>(r) * values;
      const std::int64_t first = same_as[static_cast<std::size_t>(r)];
      if (first < 0)
        finish_->apply(row, frames, plan_->columns());
      else
        std::memcpy(row, rows + static_cast<std::size_t>(first) * values, values * sizeof(float));
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
    auto* rows =
        lease(static_cast<std::size_t>(out.row_count) * info_->values_per_row(), context, out);
    const SignalView<Sample> view{reinterpret_cast<const Sample*>(in.samples.data),
                                  in.begin,
                                  end,
                                  in.last ? end : -1,
                                  scratch.noise_key(),
                                  0};
    kernel_->frames(view, from, out.row_count, rows, scratch.kernel());
    if (!finish_->needs_unit() || (in.first && in.last)) {
      finish_->apply(rows, out.row_count, plan_->columns());
    } else {
      out.pending = finish_;
      out.pending_columns = plan_->columns();
    }
  }

  static float* lease(std::size_t values, ItemContext& context, MelPart& out) {
    auto buffer = std::make_shared<Buffer>(context.run().pool.lease(values * sizeof(float)));
    auto* data = buffer->template as<float>();
    out.data = std::move(buffer);
    return data;
  }

  MelStageOptions options_;
  std::string preset_text_;  // of the options as they were written
  std::shared_ptr<const MelPlan> plan_;
  std::unique_ptr<MelKernel> kernel_;
  std::shared_ptr<FeatureInfo> info_;
  std::shared_ptr<const UnitFinish> finish_;
  std::int64_t window_ = 0;  // samples of a row; 0: rows are frames
  double rows_per_sample_ = 0, rows_extra_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<MelScratch>> free_;
};

// Of the bytes that enter a stage only those of one block's samples count, and a sample takes at
// least two.
std::size_t Mel::output_bound(const SourceInfo&, std::size_t input) const {
  const auto samples = static_cast<double>(input) / 2;
  const double rows =
      window_ > 0 ? samples * rows_per_sample_ + rows_extra_
                  : (samples + 2.0 * static_cast<double>(plan_->context())) / plan_->hop() + 2;
  return BufferPool::rounded(static_cast<std::size_t>(rows) * info_->values_per_row() *
                             sizeof(float));
}

void Mel::describe() {
  const MelOptions& o = plan_->options();
  info_ = std::make_shared<FeatureInfo>();
  info_->frames = window_ > 0 ? static_cast<int>(plan_->frames(window_)) : 0;
  info_->columns = plan_->columns();
  info_->axis = o.output == MelOptions::Output::mel ? "band" : "bin";
  info_->column_hz = plan_->column_hz();
  info_->energy_column = plan_->energy_column();
  info_->is_log = o.log != MelOptions::Log::none;
  info_->preset = preset_text_;
  const std::string quantity = o.power == 2   ? "power"
                               : o.power == 1 ? "amplitude"
                                              : fmt::format("amplitude^{}", o.power);
  switch (o.log) {
    case MelOptions::Log::none:
      info_->unit = quantity;
      break;
    case MelOptions::Log::ln:
      info_->unit = "ln " + quantity;
      break;
    case MelOptions::Log::log10:
      info_->unit = "log10 " + quantity;
      break;
    case MelOptions::Log::db:
      info_->unit = "dB";
      break;
  }
  if (o.normalize != MelOptions::Normalize::none) info_->unit += ", normalized";
  info_->sample_rate = o.sample_rate;
  info_->n_fft = o.n_fft;
  info_->hop = plan_->hop();
  info_->backend = "cpu";
  info_->instruction_set = MelKernel::instruction_set();
}

const RegisterStage<Mel, MelStageOptions> registered{
    "mel", "Mel spectrogram: every option of librosa, torchaudio, Kaldi, Whisper, NeMo and others.",
    true};

}  // namespace
}  // namespace melflow
