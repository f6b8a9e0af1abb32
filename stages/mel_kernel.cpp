// mel_kernel.cpp - per frame: gather, window, transform, power, sparse mel, log.
//
// A frame that lies inside the given samples is windowed straight from them; one that reaches
// over a unit's end is gathered with padding first and then goes the same way.
//
// A real transform of even length n is done as a complex one of n/2 (FFTW's rule-made real plans
// are up to three times slower than that: 0.70 against 0.21 us for 512) with the last step fused
// into the squared magnitude.

#include "stages/mel_kernel.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "stages/mel_loops.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace melflow {
namespace {

using loops::front;
using loops::lanes;
using loops::RowTables;

// Denormals cost a hundred cycles each, and a fading recording is full of them. Always on while
// frames are computed, whatever the caller's setting, so the bytes do not depend on it.
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

const loops::Loops& loops_for(Simd simd) {
  return simd == Simd::best ? loops::best_loops() : loops::baseline_loops();
}

}  // namespace

struct MelKernel::Tables {
  loops::Loops loops;
  FftPlan fft;
  AlignedBuffer window;        // [frame_length]
  AlignedBuffer window_float;  // [frame_length], with input_scale
  AlignedBuffer window_int16;  // [frame_length], with input_scale and kInt16Scale
  RowTables row;
  Conditioner conditioner;
  double energy_scale;  // of the sum of squares of what `window` gives
  double energy_floor;
};

namespace {

int rounded_up(int value) { return (value + lanes - 1) / lanes * lanes; }

void add_bands(const MelPlan& plan, RowTables& row) {
  const int n_mels = row.n_mels;
  row.first_bin.assign(rounded_up(n_mels), 0);
  row.vectors.assign(rounded_up(n_mels) / lanes, 0);
  std::size_t total = 0;
  for (int m = 0; m < n_mels; ++m) {
    std::int32_t& vectors = row.vectors[m / lanes];
    vectors = std::max(vectors, rounded_up(plan.bands()[m].count) / lanes);
  }
  for (const std::int32_t vectors : row.vectors) total += vectors * lanes * lanes;
  row.weights = AlignedBuffer(total);
  float* to = row.weights.data();
  for (int m = 0; m < rounded_up(n_mels); ++m) {
    const int width = row.vectors[m / lanes] * lanes;
    if (m < n_mels) {
      const MelBand& band = plan.bands()[m];
      // The zeros behind a band must not reach beyond the bins' last vector.
      row.first_bin[m] = std::min(band.first_bin, rounded_up(plan.n_bins()) - width);
      std::copy_n(plan.weights().data() + band.offset, band.count,
                  to + (band.first_bin - row.first_bin[m]));
    }
    to += width;
  }
}

RowTables make_row_tables(const MelPlan& plan) {
  RowTables row;
  const MelOptions& options = plan.options();
  row.n_bins = plan.n_bins();
  row.n_mels = options.output == MelOptions::Output::mel ? plan.n_mels() : 0;
  row.half = plan.n_fft() % 2 == 0 ? plan.n_fft() / 2 : 0;
  row.power = options.power;
  row.power_offset = static_cast<float>(options.power_offset);
  row.floor = options.htk_mode ? 1.0F : 0.0F;
  row.log = options.log != MelOptions::Log::none;
  row.amin = static_cast<float>(options.amin);
  row.offset = static_cast<float>(options.log_offset);
  row.factor = static_cast<float>(plan.log_factor());
  row.shift = static_cast<float>(plan.log_shift());

  const int turns = row.half / 2 / lanes + 1;
  row.twiddle = AlignedBuffer(static_cast<std::size_t>(turns) * 2 * lanes);
  for (int i = 0; i < turns * lanes; ++i) {
    const int k = i / lanes * lanes + simd::folded_order[i % lanes];
    const double angle = 2.0 * std::numbers::pi * k / plan.n_fft();
    float* group = row.twiddle.data() + static_cast<std::ptrdiff_t>(i / lanes) * 2 * lanes;
    group[i % lanes] = static_cast<float>(-std::sin(angle));
    group[lanes + i % lanes] = static_cast<float>(-std::cos(angle));
  }
  add_bands(plan, row);
  return row;
}

AlignedBuffer scaled_window(const MelPlan& plan, float scale) {
  AlignedBuffer window(plan.window().size());
  std::transform(plan.window().begin(), plan.window().end(), window.data(),
                 [scale](float value) { return value * scale; });
  return window;
}

std::string range_text(std::int64_t first, std::int64_t end) {
  return "[" + std::to_string(first) + ", " + std::to_string(end) + ")";
}

}  // namespace

MelKernel::MelKernel(std::shared_ptr<const MelPlan> plan, Simd simd) : plan_(std::move(plan)) {
  const int n = plan_->n_fft();
  const bool even = n % 2 == 0;
  const float half = even ? 0.5F : 1.0F;  // see power_of_halves
  const auto scale = static_cast<float>(plan_->options().input_scale);
  tables_ = std::make_unique<const Tables>(
      Tables{loops_for(simd),
             even ? FftPlan(FftPlan::Input::complex, n / 2) : FftPlan(FftPlan::Input::real, n),
             scaled_window(*plan_, half), scaled_window(*plan_, half * scale),
             scaled_window(*plan_, half * scale * kInt16Scale), make_row_tables(*plan_),
             Conditioner(*plan_), 1.0 / (half * half),
             std::max(plan_->options().energy_floor, kEnergyEpsilon)});
}

MelKernel::~MelKernel() = default;
MelKernel::MelKernel(MelKernel&&) noexcept = default;
MelKernel& MelKernel::operator=(MelKernel&&) noexcept = default;

MelKernel::Scratch MelKernel::make_scratch() const {
  const auto n_bins = static_cast<std::size_t>(plan_->n_bins());
  Scratch scratch;
  scratch.frame_ = AlignedBuffer(static_cast<std::size_t>(plan_->n_fft()));
  scratch.spectrum_ = AlignedBuffer(front + 2 * (n_bins + lanes));
  scratch.power_ = AlignedBuffer(front + n_bins + 2 * lanes);
  if (tables_->conditioner.needed())
    scratch.samples_ = AlignedBuffer(static_cast<std::size_t>(plan_->frame_length()));
  return scratch;
}

std::size_t MelKernel::Scratch::bytes() const {
  return (frame_.size() + spectrum_.size() + power_.size() + samples_.size()) * sizeof(float);
}

std::string_view MelKernel::instruction_set() { return loops::best_loops().instruction_set; }

template <class Sample>
void MelKernel::frames(const SignalView<Sample>& view, std::int64_t first_frame,
                       std::int64_t n_frames, float* out, Scratch& scratch) const {
  const MelPlan& plan = *plan_;
  const std::int64_t available =
      view.length >= 0 ? plan.frames(view.length) : plan.frames_ready(view.end);
  if (first_frame < 0 || n_frames < 0 || first_frame > available - n_frames) {
    throw std::out_of_range("frames " + range_text(first_frame, first_frame + n_frames) +
                            " asked for, the unit has " + std::to_string(available) +
                            (view.length >= 0 ? "" : " that are ready"));
  }
  if (scratch.frame_.size() != static_cast<std::size_t>(plan.n_fft())) {
    throw std::invalid_argument("the scratch belongs to a kernel with another n_fft");
  }
  const Tables& tables = *tables_;
  const int columns = plan.columns();
  const int energy_column = plan.energy_column();
  const int levels_at = energy_column == 0 ? 1 : 0;
  float* spectrum = scratch.spectrum_.data() + front;
  float* power = scratch.power_.data() + front;
  const FlushDenormals flush;

  for (std::int64_t t = first_frame; t < first_frame + n_frames; ++t, out += columns) {
    const double energy = windowed_frame(view, plan.start(t), scratch);
    tables.fft.execute(scratch.frame_.data(), spectrum);
    tables.loops.spectrum_to_row(tables.row, spectrum, power, out + levels_at);
    if (energy_column >= 0)
      out[energy_column] = static_cast<float>(std::log(std::max(energy, tables.energy_floor)));
  }
}

// Frame, window and zeros up to n_fft into scratch.frame_; returns the frame's energy where one is
// asked for.
template <class Sample>
double MelKernel::windowed_frame(const SignalView<Sample>& view, std::int64_t start,
                                 Scratch& scratch) const {
  const Tables& tables = *tables_;
  const MelPlan& plan = *plan_;
  const int length = plan.frame_length();
  float* frame = scratch.frame_.data();
  double energy = 0.0;
  if (tables.conditioner.needed()) {
    float* samples = scratch.samples_.data();
    energy = tables.conditioner.frame(view, start, frame, samples);
    tables.loops.window_float(samples, tables.window.data(), length, frame);
  } else {
    constexpr bool is_int16 = std::is_same_v<Sample, std::int16_t>;
    const float* window = is_int16 ? tables.window_int16.data() : tables.window_float.data();
    const std::int64_t end = view.length >= 0 ? std::min(view.end, view.length) : view.end;
    if (start < view.begin || start + length > end) {
      gather(view, start, length, plan.options().pad_mode, frame);
      tables.loops.window_float(frame, window, length, frame);
    } else if constexpr (is_int16) {
      tables.loops.window_int16(view.data + (start - view.begin), window, length, frame);
    } else {
      tables.loops.window_float(view.data + (start - view.begin), window, length, frame);
    }
  }
  // FFTW overwrites its input, so the zeros do not stay.
  std::fill(frame + length, frame + plan.n_fft(), 0.0F);
  if (plan.energy_column() >= 0 && !plan.options().raw_energy) {
    for (int i = 0; i < length; ++i) energy += static_cast<double>(frame[i]) * frame[i];
    energy *= tables.energy_scale;
  }
  return energy;
}

template void MelKernel::frames<std::int16_t>(const SignalView<std::int16_t>&, std::int64_t,
                                              std::int64_t, float*, Scratch&) const;
template void MelKernel::frames<float>(const SignalView<float>&, std::int64_t, std::int64_t, float*,
                                       Scratch&) const;

void fast_ln(std::span<const float> values, float* out, Simd simd) {
  loops_for(simd).ln(values.data(), static_cast<std::int64_t>(values.size()), out);
}

}  // namespace melflow
