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
#include <limits>
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

constexpr float int16_scale = 1.0F / 32768.0F;

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

// numpy's 'reflect': the end samples are not repeated, and a unit shorter than the padding is
// reflected again and again.
std::int64_t reflect(std::int64_t i, std::int64_t length) {
  if (length == 1) return 0;
  while (i < 0 || i >= length) i = i < 0 ? -i : 2 * (length - 1) - i;
  return i;
}

const loops::Loops& loops_for(Simd simd) {
  return simd == Simd::best ? loops::best_loops() : loops::baseline_loops();
}

}  // namespace

struct MelKernel::Tables {
  loops::Loops loops;
  FftPlan fft;
  AlignedBuffer window_float;  // [n_fft]
  AlignedBuffer window_int16;  // [n_fft], with int16_scale
  RowTables row;
};

namespace {

int rounded_up(int value) { return (value + lanes - 1) / lanes * lanes; }

void add_bands(const MelPlan& plan, RowTables& row) {
  const int n_mels = plan.n_mels();
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
  row.n_mels = plan.n_mels();
  row.half = plan.n_fft() % 2 == 0 ? plan.n_fft() / 2 : 0;
  row.power = options.power;
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

// The n_fft samples from `start` on into out, padded where they lie outside the unit.
template <class Sample>
void gather(const SignalView<Sample>& view, std::int64_t start, const MelPlan& plan, float* out) {
  const MelOptions::PadMode mode = plan.options().pad_mode;
  const std::int64_t length =
      view.length >= 0 ? view.length : std::numeric_limits<std::int64_t>::max() / 4;
  for (int i = 0; i < plan.n_fft(); ++i) {
    std::int64_t at = start + i;
    if (at < 0 || at >= length) {
      if (mode == MelOptions::PadMode::constant) {
        out[i] = 0.0F;
        continue;
      }
      at = mode == MelOptions::PadMode::edge ? std::clamp<std::int64_t>(at, 0, length - 1)
                                             : reflect(at, length);
    }
    if (at < view.begin || at >= view.end) {
      throw std::out_of_range("a frame needs sample " + std::to_string(at) +
                              " of its unit, given are " + range_text(view.begin, view.end));
    }
    out[i] = static_cast<float>(view.data[at - view.begin]);
  }
}

}  // namespace

MelKernel::MelKernel(std::shared_ptr<const MelPlan> plan, Simd simd) : plan_(std::move(plan)) {
  const int n = plan_->n_fft();
  const bool even = n % 2 == 0;
  const float half = even ? 0.5F : 1.0F;  // see power_of_halves
  tables_ = std::make_unique<const Tables>(
      Tables{loops_for(simd),
             even ? FftPlan(FftPlan::Input::complex, n / 2) : FftPlan(FftPlan::Input::real, n),
             scaled_window(*plan_, half), scaled_window(*plan_, half * int16_scale),
             make_row_tables(*plan_)});
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
  return scratch;
}

std::size_t MelKernel::Scratch::bytes() const {
  return (frame_.size() + spectrum_.size() + power_.size()) * sizeof(float);
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
  const int n = plan.n_fft();
  const std::int64_t end = view.length >= 0 ? std::min(view.end, view.length) : view.end;
  float* frame = scratch.frame_.data();
  float* spectrum = scratch.spectrum_.data() + front;
  float* power = scratch.power_.data() + front;
  const FlushDenormals flush;

  for (std::int64_t t = first_frame; t < first_frame + n_frames; ++t, out += plan.n_mels()) {
    const std::int64_t start = t * plan.hop() - plan.pad();
    const bool inside = start >= view.begin && start + n <= end;
    if constexpr (std::is_same_v<Sample, std::int16_t>) {
      const float* window = tables.window_int16.data();
      if (inside) {
        tables.loops.window_int16(view.data + (start - view.begin), window, n, frame);
      } else {
        gather(view, start, plan, frame);
        tables.loops.window_float(frame, window, n, frame);
      }
    } else {
      const float* window = tables.window_float.data();
      if (!inside) gather(view, start, plan, frame);
      const float* samples = inside ? view.data + (start - view.begin) : frame;
      tables.loops.window_float(samples, window, n, frame);
    }
    tables.fft.execute(frame, spectrum);
    tables.loops.spectrum_to_row(tables.row, spectrum, power, out);
  }
}

template void MelKernel::frames<std::int16_t>(const SignalView<std::int16_t>&, std::int64_t,
                                              std::int64_t, float*, Scratch&) const;
template void MelKernel::frames<float>(const SignalView<float>&, std::int64_t, std::int64_t, float*,
                                       Scratch&) const;

void fast_ln(std::span<const float> values, float* out, Simd simd) {
  loops_for(simd).ln(values.data(), static_cast<std::int64_t>(values.size()), out);
}

UnitFinish UnitFinish::from(const MelOptions& options) {
  UnitFinish finish;
  finish.ref_max = options.ref_max;
  if (options.top_db) finish.top_db = static_cast<float>(*options.top_db);
  return finish;
}

void UnitFinish::apply(std::span<float> rows, float unit_max) const {
  const float shift = ref_max ? unit_max : 0.0F;
  const float floor = top_db ? unit_max - shift - *top_db : -std::numeric_limits<float>::infinity();
  for (float& value : rows) {
    const float shifted = value - shift;
    value = shifted < floor ? floor : shifted;  // NaN stays
  }
}

float max_value(std::span<const float> values) {
  float largest = -std::numeric_limits<float>::infinity();
  for (const float value : values) largest = value > largest ? value : largest;
  return largest;
}

}  // namespace melflow
