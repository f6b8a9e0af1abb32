#include "stages/features/mel_front.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/facts.h"
#include "stages/files/files_read.h"
#include "stages/row_type.h"

namespace melflow {
namespace {

// Whether all values computed from samples within full scale are certain to be finite.
bool is_always_finite(const MelPlan& plan) {
  const MelOptions& o = plan.options();
  constexpr double kLimit = std::numeric_limits<float>::max() / 1024;  // leaves room for rounding
  constexpr double kMostNoise = 9;  // the most standard deviations that Noise yields
  double sample = (o.input_scale + kMostNoise * o.dither) * (1 + o.preemphasis);
  if (o.preemphasis_first == MelOptions::PreemphasisFirst::librosa) sample *= 4;
  if (o.remove_dc) sample *= 2;
  double window = 0;
  for (const double w : plan.window_double()) window += std::abs(w);
  const double power = std::max(std::pow(window * sample, 2) + o.power_offset, o.power_floor);
  double value = std::pow(power, o.power / 2);
  double weights = 1;
  for (const MelBand& band : plan.bands()) {
    const auto of_band = plan.weights().subspan(static_cast<std::size_t>(band.offset),
                                                static_cast<std::size_t>(band.count));
    const auto add_size = [](double sum, float w) { return sum + std::abs(w); };
    weights = std::max(weights, std::accumulate(of_band.begin(), of_band.end(), 0.0, add_size));
  }
  value *= weights;
  if (!(power < kLimit && value < kLimit)) return false;
  // The natural logarithm of a float lies within +-104.
  if (has_plain_log(o)) value = 104 * std::abs(plan.log_factor()) + std::abs(plan.log_shift());
  if (o.normalize != MelOptions::Normalize::fixed) return true;
  for (const double mean : o.norm_mean) value = std::max(value, std::abs(mean));
  double least = 1;
  if (o.norm_variance)
    for (const double std : o.norm_std) least = std::min(least, std);
  return 2 * value / least < kLimit;
}

// Returns the sample of the block that is farthest from zero, or not a number, as text.
template <class Sample>
std::string worst_sample(const Windows& in, double scale) {
  const auto* samples = reinterpret_cast<const Sample*>(in.samples.data);
  std::int64_t worst = 0;
  double size = -1;
  for (std::int64_t i = 0; i < in.samples.count && std::isfinite(size); ++i) {
    const double now = std::abs(static_cast<double>(samples[i]));
    if (now <= size) continue;
    size = now;
    worst = i;
  }
  return fmt::format("sample {} (at {:.3f} s) is {:g}", in.begin + worst,
                     static_cast<double>(in.begin + worst) / in.sample_rate,
                     static_cast<double>(samples[worst]) * scale);
}

// Returns options with an upper bound of the frames' context: a window has at most n_fft samples,
// and no rate known from the plan alone is higher.
MelStageOptions at_any_rate(MelStageOptions options) {
  constexpr int kHighestRate = 1'000'000;  // of a resample stage [Hz]
  options.sample_rate = kHighestRate;
  constexpr std::int64_t kLongestHop = 1 << 24;  // the largest allowed
  if (options.win_length && options.win_length->is_time())
    options.win_length = Length(options.mel.n_fft);
  if (options.hop) options.hop = Length(std::min(options.hop->at(kHighestRate), kLongestHop));
  return options;
}

}  // namespace

std::string_view chosen_instruction_set() {
  try {
    return MelKernel::instruction_set();
  } catch (const std::invalid_argument& e) {
    constexpr std::size_t kMost = 300;  // of a value of any length
    throw ConfigError(
        excerpt(e.what(), kMost),
        {std::make_shared<const std::string>(MelKernel::kInstructionSetVariable), 0, 0});
  }
}

MelFront::MelFront(MelStageOptions options)
    : options_(std::move(options)), preset_text_(options_.preset_text()) {
  options_.mel = options_.resolved();
}

Requirements MelFront::require(const Requirements& below) const {
  Requirements above = below;
  above.erase(requirement::kRowTypes);  // there are no rows before this stage
  if (options_.sample_rate) above.set(requirement::kSampleRate, *options_.sample_rate);
  // Frame geometry depends neither on the rate nor on the band edges, which may not be known yet.
  MelOptions geometry = options_.mel;
  if (!options_.sample_rate) geometry = at_any_rate(options_).resolved();
  geometry.fmin = 0;
  geometry.fmax.reset();
  geometry.filter_rate.reset();
  geometry.vtln_warp = 1;
  if (check(geometry).empty()) above.set(requirement::kContext, MelPlan(geometry).context());
  return above;
}

Properties MelFront::plan(const Properties& given, PlanCheck& check_plan, ComputedBy by) {
  const auto given_rate = given.get(property::kSampleRate);
  if (!options_.sample_rate && !given_rate) {
    check_plan.error("",
                     "'sample_rate' is missing; write the rate of the recordings, or put a "
                     "resample stage before this node");
    return given;
  }
  if (given_rate && options_.sample_rate && *given_rate != *options_.sample_rate)
    check_plan.error(
        "sample_rate",
        fmt::format("{} Hz{}, but the input has {} Hz; resample it to {} Hz, or change this",
                    options_.sample_rate->hz, preset_note(), *given_rate,
                    options_.sample_rate->hz));
  if (!options_.sample_rate) options_.sample_rate = static_cast<int>(*given_rate);
  auto problems = options_.check_times(*options_.sample_rate);
  options_.mel = options_.resolved();
  if (problems.empty()) problems = check(options_.mel);
  for (const MelOptionProblem& p : problems) {
    // If a preset set the option, its origin replaces the advice.
    const std::string text = p.without_name(), origin = options_.from_preset(p.option);
    check_plan.error(p.option, origin.empty() ? text : text.substr(0, text.find(';')) + origin);
  }
  if (by.backend != "cpu" && options_.mel.precision == MelOptions::Precision::float64) {
    check_plan.error("precision",
                     "double: CUDA devices compute in single precision; set backend: cpu (or auto, "
                     "which then is the CPU), or precision: float");
    return given;
  }
  if (!problems.empty()) return given;
  plan_ = std::make_shared<MelPlan>(options_.mel);
  kernel_ = std::make_shared<MelKernel>(plan_, chosen_instruction_set());
  finish_ = std::make_shared<UtteranceSteps>(UtteranceSteps::of_mel(options_.mel));
  always_finite_ = is_always_finite(*plan_);
  if (plan_->empty_bands() > 0)
    check_plan.warning("n_mels",
                       fmt::format("{} of {} bands are so narrow that no frequency of the {}-point "
                                   "transform falls into them; they stay at the floor",
                                   plan_->empty_bands(), plan_->n_mels(), plan_->n_fft()));
  if (const double floor = options_.mel.energy_floor;
      options_.mel.use_energy && floor > 0 && floor < options_.mel.energy_eps)
    check_plan.warning("energy_floor",
                       fmt::format("{} has no effect: energies are floored at {:.3g} in any case "
                                   "(energy_eps), as Kaldi does it",
                                   floor, options_.mel.energy_eps));
  for (const MelOptionProblem& p : options_.unit_remarks(options_.mel.sample_rate))
    check_plan.warning(p.option, p.message);
  if (const std::string remark = options_.preset_remark(); !remark.empty())
    check_plan.warning("preset", remark);
  if (const std::string remark = options_.range_remark(); !remark.empty())
    check_plan.warning("top_db", remark);
  window_ = given.get_or(property::kWindow, 0);
  if (const std::string remark = options_.window_remark(window_); !remark.empty())
    check_plan.warning("preset", remark);
  rows_per_sample_ = given.get_or(property::kRowsPerSample, 0);
  rows_extra_ = given.get_or(property::kRowsExtra, 0);
  if (window_ > 0 && plan_->frames(window_) == 0)
    check_plan.error("n_fft", fmt::format("a window of {} samples is shorter than one frame of {}",
                                          window_, plan_->frame_length()));
  describe(std::move(by));
  Properties out = given;
  out.set(property::kFeatures, info_);
  return out;
}

void MelFront::give_required_rows(const Requirements& required) {
  row_type_ = finish_->empty() ? required_rows(required) : NumberType::float32;
}

void MelFront::start(RunContext& run) const {
  for (const std::string& file : {options_.mel.window_values.file, options_.mel.filters.file})
    if (!file.empty()) note_file_read(run, file);
}

std::optional<Value> MelFront::settings() const {
  return plan_ ? std::optional(MelStageOptions::canonical(options_.mel)) : std::nullopt;
}

std::string MelFront::preset_note() const {
  const MelPreset* const preset = options_.preset.preset;
  return preset == nullptr || preset->options.sample_rate != options_.mel.sample_rate
             ? ""
             : fmt::format(" (preset {})", preset->name);
}

// Assumes that all input bytes are samples of one block, and the smallest samples, of two bytes,
// since these yield the most rows.
std::size_t MelFront::output_bound(std::size_t input, NumberType type) const {
  const auto samples = static_cast<double>(input) / 2;
  const double rows =
      window_ > 0 ? samples * rows_per_sample_ + rows_extra_
                  : (samples + 2.0 * static_cast<double>(plan_->context())) / plan_->hop() + 2;
  return BufferPool::rounded(static_cast<std::size_t>(rows) * info_->values_per_row() *
                             size_of(type));
}

std::optional<ItemError> MelFront::refusal(const Windows& in) const {
  if (in.sample_rate == options_.mel.sample_rate) return std::nullopt;
  return ItemError::failed(
      fmt::format("is sampled at {0} Hz, mel.sample_rate is {1}{2}; put a resample stage before, "
                  "set mel.sample_rate to {0} if all are so, or leave such files out",
                  in.sample_rate, options_.mel.sample_rate, preset_note()));
}

ItemError MelFront::too_short(const Windows& in) const {
  std::int64_t low = 0, high = 1;
  while (plan_->frames(high) == 0) high *= 2;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (plan_->frames(middle) == 0 ? low : high) = middle;
  }
  return ItemError::skipped(
      fmt::format("shorter than one frame: {} samples of {}", in.end(), high));
}

std::uint64_t MelFront::noise_key(std::size_t part, const ItemContext& context) const {
  if (options_.mel.dither == 0) return 0;
  return noise_key(context.run().source.name(context.origin(part).stream->index()));
}

std::uint64_t MelFront::noise_key(std::string_view name) const {
  return options_.mel.dither == 0 ? 0 : XXH3_64bits(name.data(), name.size());
}

void MelFront::ready_frames(const Windows& in, MelPart& out) const {
  const std::int64_t from = in.first ? 0 : plan_->frames_ready(in.fresh);
  const std::int64_t to = in.last ? plan_->frames(in.end()) : plan_->frames_ready(in.end());
  out.first_row = from;
  out.row_count = std::max<std::int64_t>(0, to - from);
}

void MelFront::finish_windows(std::span<const std::int64_t> same_as, void* rows) const {
  const std::size_t row_bytes = info_->values_per_row() * size_of(row_type_);
  auto* const begin = static_cast<std::byte*>(rows);
  for (std::size_t r = 0; r < same_as.size(); ++r) {
    std::byte* row = begin + r * row_bytes;
    if (same_as[r] >= 0)
      std::memcpy(row, begin + static_cast<std::size_t>(same_as[r]) * row_bytes, row_bytes);
    else if (!finish_->empty())
      finish_->apply(reinterpret_cast<float*>(row), info_->frames, info_->columns);
  }
}

void MelFront::finish_whole(const Windows& in, void* rows, MelPart& out) const {
  if (finish_->empty()) return;
  if (!finish_->needs_utterance() || (in.first && in.last)) {
    finish_->apply(static_cast<float*>(rows), out.row_count, plan_->columns());
  } else {
    out.pending = finish_;
    out.pending_columns = plan_->columns();
  }
}

std::optional<ItemError> MelFront::damage(const Windows& in, const MelPart& part) const {
  const bool is_narrow = in.samples.type == SampleType::int16;
  if (is_narrow && always_finite_ && row_type_ != NumberType::float16) return std::nullopt;
  const std::size_t width = info_->values_per_row();
  const std::int64_t at = first_not_finite(
      part.data->data(), static_cast<std::size_t>(part.row_count) * width, row_type_, row_type_);
  if (at < 0) return std::nullopt;
  std::string as;
  if (row_type_ != NumberType::float32)
    as = fmt::format(" as {}, which ends at {}", to_text(row_type_), greatest_of(row_type_));
  return ItemError::failed(fmt::format(
      "row {} is not finite{}: {}", part.first_row + at / static_cast<std::int64_t>(width), as,
      is_narrow ? worst_sample<std::int16_t>(in, kInt16Scale) : worst_sample<float>(in, 1)));
}

void MelFront::describe(ComputedBy by) {
  const MelOptions& o = plan_->options();
  auto info = std::make_shared<FeatureInfo>();
  info->frames = window_ > 0 ? static_cast<int>(plan_->frames(window_)) : 0;
  info->columns = plan_->columns();
  const bool is_mel = o.output == MelOptions::Output::mel;
  info->name = is_mel ? "mel" : "spectrogram";
  info->axis = is_mel ? "band" : "bin";
  info->column_hz = plan_->column_hz();
  info->energy_column = plan_->energy_column();
  info->is_log = o.log != MelOptions::Log::none;
  info->preset = preset_text_;
  info->unit = unit_of(o);
  info->sample_rate = o.sample_rate;
  info->n_fft = o.n_fft;
  info->hop = plan_->hop();
  info->frames_of = [plan = plan_](std::int64_t samples) { return plan->frames(samples); };
  info_ = std::move(info);
  set_computed_by(std::move(by));
}

void MelFront::set_computed_by(ComputedBy by) const {
  // FFTW takes the processor's widest instructions, whatever MELFLOW_INSTRUCTION_SET says.
  by.wide_sets_agree = kernel_->transform() != "fftw";
  if (by.backend == "cpu") by.transform = kernel_->transform();
  const std::string_view widest = MelKernel::instruction_sets().front();
  if (by.transform == "fftw" && by.instruction_set != widest)
    by.instruction_set += fmt::format(", FFTW by {}", widest);
  else if (by.transform == "melflow")
    by.instruction_set += ", transform by melflow";
  *info_->computed_by = std::move(by);
}

}  // namespace melflow
