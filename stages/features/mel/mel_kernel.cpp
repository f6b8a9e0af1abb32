// mel_kernel.cpp - collects frames into groups and passes each group through the loops.
//
// A frame within the given samples is read directly from them; one that extends past an utterance's
// end, or is changed before the window, is gathered first. A group that is not full repeats its
// last frame, into a row that is not read. With precision: double no frame waits.

#include "stages/features/mel/mel_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace melflow {
namespace {

using lanes::Loops;

// Denormals cost a hundred cycles each, and a fading recording is full of them. They are flushed
// while frames are computed, whatever the caller's setting, so the bytes do not depend on it.
class FlushDenormals {
 public:
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;
#if defined(__SSE2__)
  FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040U); }  // FTZ and DAZ
  ~FlushDenormals() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#elif defined(__aarch64__)
  FlushDenormals() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved_));
    __asm__ volatile("msr fpcr, %0" : : "r"(saved_ | (std::uint64_t{1} << 24)));  // FZ
  }
  ~FlushDenormals() { __asm__ volatile("msr fpcr, %0" : : "r"(saved_)); }

 private:
  std::uint64_t saved_;
#else
  FlushDenormals() = default;
#endif
};

// The loops to use; both yield the same bytes.
struct Chosen {
  const Loops* wide;
  const Loops* narrow;  // for a group that is at most half full
};

// Empty if this processor has none of the name.
std::optional<Chosen> choose(std::string_view set) {
  const lanes::Available& all = lanes::available();
  for (int i = 0; i < all.count; ++i) {
    // The last ones, the baseline, round otherwise.
    if (set == all.loops[i]->instruction_set)
      return Chosen{all.loops[i], all.loops[i + 2 < all.count ? i + 1 : i]};
  }
  return std::nullopt;
}

}  // namespace

struct MelKernel::Tables {
  Tables(const MelPlan& plan, const Chosen& chosen);

  Chosen loops;
  int group = 0;  // frames computed together
  LaneTables lanes;
  RealFft<float> fft;          // set if `lanes` has no transform
  AlignedBuffer window;        // [frame_length]
  AlignedBuffer window_float;  // [frame_length], with input_scale
  AlignedBuffer window_int16;  // [frame_length], with input_scale and kInt16Scale
  Conditioner conditioner;
  double energy_scale;  // scales the sum of squares of a windowed frame
  double energy_floor;
  bool computes_on_add;              // add() computes something before a group is full
  std::optional<DoubleRow> doubles;  // precision: double
};

namespace {

AlignedBuffer scaled_window(const MelPlan& plan, float scale) {
  AlignedBuffer window(plan.window().size());
  std::transform(plan.window().begin(), plan.window().end(), window.data(),
                 [scale](float value) { return value * scale; });
  return window;
}

float log_energy(double energy, double floor) {
  return static_cast<float>(std::log(std::max(energy, floor)));
}

std::string range_text(std::int64_t first, std::int64_t end) {
  return "[" + std::to_string(first) + ", " + std::to_string(end) + ")";
}

}  // namespace

MelKernel::Tables::Tables(const MelPlan& plan, const Chosen& chosen)
    : loops(chosen), lanes(plan), conditioner(plan) {
  const bool halves = lanes.has_transform();  // see power_of_pair
  const float half = halves ? 0.5F : 1.0F;
  const auto scale = static_cast<float>(plan.options().input_scale);
  window = scaled_window(plan, half);
  window_float = scaled_window(plan, half * scale);
  window_int16 = scaled_window(plan, half * scale * kInt16Scale);
  energy_scale = 1.0 / (half * half);
  energy_floor = std::max(plan.options().energy_floor, plan.options().energy_eps);
  if (plan.options().precision == MelOptions::Precision::float64) doubles.emplace(plan);
  computes_on_add = conditioner.needed() || plan.energy_column() >= 0 || doubles.has_value();
  // If several transforms at once exceed every cache, so do their powers: one frame at a time.
  const bool is_huge = plan.n_fft() > 2 * LaneTables::max_points;
  if (is_huge) loops.wide = loops.narrow;
  if (!halves) fft = RealFft<float>(plan.n_fft());
  group = is_huge ? 1 : loops.wide->width;
}

std::vector<std::string_view> MelKernel::instruction_sets() {
  const lanes::Available& all = lanes::available();
  std::vector<std::string_view> sets(static_cast<std::size_t>(all.count));
  std::transform(all.loops, all.loops + all.count, sets.begin(),
                 [](const Loops* loops) { return loops->instruction_set; });
  return sets;
}

std::string_view MelKernel::instruction_set() {
  static const std::string_view chosen = [] {
    const std::vector<std::string_view> sets = instruction_sets();
    const char* const given =
        std::getenv(kInstructionSetVariable);  // NOLINT(concurrency-mt-unsafe)
    if (given == nullptr || *given == '\0') return sets.front();
    const auto found = std::find(sets.begin(), sets.end(), given);
    if (found != sets.end()) return *found;
    std::string all;
    for (const std::string_view set : sets) all += (all.empty() ? "" : ", ") + std::string(set);
    throw std::invalid_argument("'" + std::string(given) +
                                "' is not an instruction set of this processor, which has " + all);
  }();
  return chosen;
}

MelKernel::MelKernel(std::shared_ptr<const MelPlan> plan, std::string_view set)
    : plan_(std::move(plan)),
      tables_(std::make_unique<const Tables>(*plan_, choose(set).value())) {}

MelKernel::~MelKernel() = default;
MelKernel::MelKernel(MelKernel&&) noexcept = default;
MelKernel& MelKernel::operator=(MelKernel&&) noexcept = default;

MelKernel::Scratch MelKernel::make_scratch() const {
  Scratch scratch;
  if (tables_->doubles) {
    scratch.doubles_ = tables_->doubles->make_scratch();
    return scratch;
  }
  const auto width = static_cast<std::size_t>(tables_->loops.wide->width);
  const auto n_bins = static_cast<std::size_t>(plan_->n_bins());
  const auto length = static_cast<std::size_t>(plan_->frame_length());
  const auto n_fft = static_cast<std::size_t>(plan_->n_fft());
  const bool in_lanes = tables_->lanes.has_transform();
  scratch.points_ = AlignedBuffer(in_lanes ? n_fft * width : n_fft);
  if (!in_lanes) {
    scratch.spectrum_ = AlignedBuffer(2 * n_bins);
    scratch.of_fft_ = tables_->fft.make_work();
  }
  scratch.power_ = AlignedBuffer(n_bins * width);
  scratch.gathered_ = AlignedBuffer(static_cast<std::size_t>(tables_->group) * length);
  scratch.unread_ = AlignedBuffer(static_cast<std::size_t>(plan_->columns()));
  if (tables_->conditioner.needed()) scratch.work_ = AlignedBuffer(length);
  return scratch;
}

std::string_view MelKernel::transform() const {
  return tables_->lanes.has_transform() && !tables_->doubles ? "" : transform_name();
}

template <class Sample>
void MelKernel::add(const SignalView<Sample>& view, std::int64_t first_frame, std::int64_t n_frames,
                    float* out, Scratch& scratch) const {
  const MelPlan& plan = *plan_;
  const std::int64_t available =
      view.length >= 0 ? plan.frames(view.length) : plan.frames_ready(view.end);
  if (first_frame < 0 || n_frames < 0 || first_frame > available - n_frames) {
    throw std::out_of_range("frames " + range_text(first_frame, first_frame + n_frames) +
                            " asked for, the utterance has " + std::to_string(available) +
                            (view.length >= 0 ? "" : " that are ready"));
  }
  const Tables& tables = *tables_;
  std::optional<FlushDenormals> flush_denormals;
  if (tables.computes_on_add) {
    flush_denormals.emplace();
    if (tables.doubles) return add_doubles(view, first_frame, n_frames, out, scratch);
  }
  check_scratch(scratch.power_.size(), static_cast<std::size_t>(plan.n_bins()) *
                                           static_cast<std::size_t>(tables.loops.wide->width));
  const int columns = plan.columns();
  const int energy_column = plan.energy_column();
  const int levels_at = energy_column == 0 ? 1 : 0;
  const bool is_int16 = std::is_same_v<Sample, std::int16_t> && !tables.conditioner.needed();
  if (scratch.is_int16_ != is_int16) flush(scratch);
  scratch.is_int16_ = is_int16;

  for (std::int64_t t = first_frame; t < first_frame + n_frames; ++t, out += columns) {
    double energy = 0.0;
    const auto lane = static_cast<std::size_t>(scratch.waiting_);
    scratch.samples_[lane] = frame_samples(view, plan.start(t), scratch, energy);
    scratch.rows_[lane] = out + levels_at;
    if (energy_column >= 0) out[energy_column] = log_energy(energy, tables.energy_floor);
    if (++scratch.waiting_ == tables.group) flush(scratch);
  }
}

void MelKernel::check_scratch(std::size_t size, std::size_t expected) const {
  if (size != expected)
    throw std::invalid_argument("the scratch belongs to a kernel with another n_fft or precision");
}

template <class Sample>
void MelKernel::add_doubles(const SignalView<Sample>& view, std::int64_t first_frame,
                            std::int64_t n_frames, float* out, Scratch& scratch) const {
  check_scratch(scratch.doubles_.frame.size(), static_cast<std::size_t>(plan_->n_fft()));
  const int energy_column = plan_->energy_column();
  const int levels_at = energy_column == 0 ? 1 : 0;
  for (std::int64_t t = first_frame; t < first_frame + n_frames; ++t, out += plan_->columns()) {
    const double energy =
        tables_->doubles->compute(view, plan_->start(t), scratch.doubles_, out + levels_at);
    if (energy_column >= 0) out[energy_column] = log_energy(energy, tables_->energy_floor);
  }
}

template <class Sample>
void MelKernel::frames(const SignalView<Sample>& view, std::int64_t first_frame,
                       std::int64_t n_frames, float* out, Scratch& scratch) const {
  add(view, first_frame, n_frames, out, scratch);
  flush(scratch);
}

namespace {

// Sum of squares of the windowed frame, in double; `window` includes the factors of the loops.
template <class Sample>
double windowed_energy(const Sample* samples, const float* window, int length) {
  double energy = 0.0;
  for (int i = 0; i < length; ++i) {
    const float value = static_cast<float>(samples[i]) * window[i];
    energy += static_cast<double>(value) * value;
  }
  return energy;
}

}  // namespace

// Returns the samples of the frame that starts at `start`, in the view or gathered; sets `energy`
// to its sum of squares if the options request one.
template <class Sample>
const void* MelKernel::frame_samples(const SignalView<Sample>& view, std::int64_t start,
                                     Scratch& scratch, double& energy) const {
  const Tables& tables = *tables_;
  const MelPlan& plan = *plan_;
  const int length = plan.frame_length();
  const bool needs_energy = plan.energy_column() >= 0 && !plan.options().raw_energy;
  float* gathered =
      scratch.gathered_.data() + static_cast<std::ptrdiff_t>(scratch.waiting_) * length;
  if (tables.conditioner.needed()) {
    energy = tables.conditioner.frame(view, start, scratch.work_.data(), gathered);
    if (needs_energy)
      energy = tables.energy_scale * windowed_energy(gathered, tables.window.data(), length);
    return gathered;
  }
  const std::int64_t end = view.length >= 0 ? std::min(view.end, view.length) : view.end;
  const Sample* samples = nullptr;
  if (start >= view.begin && start + length <= end) {
    samples = view.data + (start - view.begin);
  } else {
    auto* to = reinterpret_cast<Sample*>(gathered);
    gather(view, start, length, plan, to);
    samples = to;
  }
  if (needs_energy) {
    constexpr bool is_int16 = std::is_same_v<Sample, std::int16_t>;
    const AlignedBuffer& window = is_int16 ? tables.window_int16 : tables.window_float;
    energy = tables.energy_scale * windowed_energy(samples, window.data(), length);
  }
  return samples;
}

template <class Sample>
const void* MelKernel::frame(const SignalView<Sample>& view, std::int64_t t, Scratch& scratch,
                             float& energy) const {
  std::optional<FlushDenormals> flush_denormals;
  if (tables_->computes_on_add) flush_denormals.emplace();
  double sum = 0.0;
  const void* samples = frame_samples(view, plan_->start(t), scratch, sum);
  if (plan_->energy_column() >= 0) energy = log_energy(sum, tables_->energy_floor);
  return samples;
}

void MelKernel::flush(Scratch& scratch) const {
  const int n = std::exchange(scratch.waiting_, 0);
  if (n == 0) return;
  const Tables& tables = *tables_;
  const Loops& loops = n <= tables.loops.narrow->width ? *tables.loops.narrow : *tables.loops.wide;
  for (auto lane = static_cast<std::size_t>(n); lane < static_cast<std::size_t>(loops.width);
       ++lane) {
    scratch.samples_[lane] = scratch.samples_[lane - 1];
    scratch.rows_[lane] = scratch.unread_.data();
  }
  const AlignedBuffer& window = tables.conditioner.needed() ? tables.window
                                : scratch.is_int16_         ? tables.window_int16
                                                            : tables.window_float;
  const lanes::RunTables& run = tables.lanes.run();
  float* points = scratch.points_.data();
  float* power = scratch.power_.data();
  const FlushDenormals flush_denormals;
  if (!tables.lanes.has_transform()) {
    for (int lane = 0; lane < n; ++lane) transform_one(lane, loops.width, window, scratch);
  } else {
    if (scratch.is_int16_) {
      const std::int16_t* frames[lanes::max_width];
      for (int lane = 0; lane < loops.width; ++lane)
        frames[lane] = static_cast<const std::int16_t*>(scratch.samples_[lane]);
      loops.load_int16(run, frames, window.data(), points);
    } else {
      const float* frames[lanes::max_width];
      for (int lane = 0; lane < loops.width; ++lane)
        frames[lane] = static_cast<const float*>(scratch.samples_[lane]);
      loops.load_float(run, frames, window.data(), points);
    }
    loops.transform(run, points, power);
  }
  loops.rows(run, power, scratch.rows_.data());
}

// Writes the power [n_bins] of one waiting frame to its lane of a group of `width`.
void MelKernel::transform_one(int lane, int width, const AlignedBuffer& window,
                              Scratch& scratch) const {
  const int length = plan_->frame_length();
  float* frame = scratch.points_.data();
  float* spectrum = scratch.spectrum_.data();
  const void* samples = scratch.samples_[lane];
  if (scratch.is_int16_) {
    const auto* x = static_cast<const std::int16_t*>(samples);
    for (int i = 0; i < length; ++i) frame[i] = static_cast<float>(x[i]) * window.data()[i];
  } else {
    const auto* x = static_cast<const float*>(samples);
    for (int i = 0; i < length; ++i) frame[i] = x[i] * window.data()[i];
  }
  // FFTW overwrites its input, so the zeros are rewritten for each frame.
  std::fill(frame + length, frame + plan_->n_fft(), 0.0F);
  tables_->fft.execute(frame, spectrum, scratch.of_fft_);
  float* power = scratch.power_.data() + lane;
  for (int k = 0; k < plan_->n_bins(); ++k) {
    const float re = spectrum[2 * k], im = spectrum[2 * k + 1];
    power[static_cast<std::ptrdiff_t>(k) * width] = re * re + im * im;
  }
}

template void MelKernel::frames<std::int16_t>(const SignalView<std::int16_t>&, std::int64_t,
                                              std::int64_t, float*, Scratch&) const;
template void MelKernel::frames<float>(const SignalView<float>&, std::int64_t, std::int64_t, float*,
                                       Scratch&) const;
template void MelKernel::add<std::int16_t>(const SignalView<std::int16_t>&, std::int64_t,
                                           std::int64_t, float*, Scratch&) const;
template void MelKernel::add<float>(const SignalView<float>&, std::int64_t, std::int64_t, float*,
                                    Scratch&) const;

template const void* MelKernel::frame<std::int16_t>(const SignalView<std::int16_t>&, std::int64_t,
                                                    Scratch&, float&) const;
template const void* MelKernel::frame<float>(const SignalView<float>&, std::int64_t, Scratch&,
                                             float&) const;

}  // namespace melflow
