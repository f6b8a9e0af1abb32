#include "stages/features/mel/mel_signal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace melflow {
namespace {

using PadMode = MelOptions::PadMode;

// Same as 'reflect' (repeated 0) and 'symmetric' (repeated 1) of numpy.pad: an utterance shorter
// than the padding is reflected repeatedly.
std::int64_t reflect(std::int64_t i, std::int64_t length, std::int64_t repeated) {
  if (length == 1) return 0;
  const std::int64_t period = 2 * (length - 1 + repeated);
  std::int64_t phase = i % period;
  if (phase < 0) phase += period;
  return phase < length ? phase : period - phase - repeated;
}

constexpr std::int64_t kSilence = -1;

// Returns the utterance's sample for position i, or kSilence.
std::int64_t padded_index(std::int64_t i, std::int64_t length, PadMode mode) {
  if (i >= 0 && i < length) return i;
  switch (mode) {
    case PadMode::reflect:
      return reflect(i, length, 0);
    case PadMode::symmetric:
      return reflect(i, length, 1);
    case PadMode::edge:
    case PadMode::linear_ramp:
      return i < 0 ? 0 : length - 1;
    case PadMode::constant:
      break;
  }
  return kSilence;
}

std::int64_t padded_index(std::int64_t i, std::int64_t length, const Padding& padding) {
  if (i >= 0 && i < length) return i;
  if (padding.is_plain) return padded_index(i, length, padding.mode);
  if (i >= length + padding.silent_from) return kSilence;
  const std::int64_t longer = length + 2 * padding.zeros;
  const std::int64_t at = padded_index(i + padding.zeros, longer, padding.mode);
  const std::int64_t own = at - padding.zeros;
  return at != kSilence && own >= 0 && own < length ? own : kSilence;
}

// Returns the factor of the end sample at i: (P - d) / P, d samples outside with P of padding, as
// in numpy.pad with mode linear_ramp to 0.
double ramp_at(std::int64_t i, std::int64_t length, const Padding& padding) {
  const std::int64_t outside = std::max(-padding.zeros - i, i - padding.zeros - (length - 1));
  if (outside <= 0) return 1.0;
  return static_cast<double>(padding.ramp - outside) / static_cast<double>(padding.ramp);
}

template <class Sample>
std::int64_t known_length(const SignalView<Sample>& view) {
  return view.length >= 0 ? view.length : std::numeric_limits<std::int64_t>::max() / 4;
}

template <class Sample>
Sample sample_at(const SignalView<Sample>& view, std::int64_t at) {
  if (at < view.begin || at >= view.end) {
    throw std::out_of_range("a frame needs sample " + std::to_string(at) +
                            " of its utterance, given are [" + std::to_string(view.begin) + ", " +
                            std::to_string(view.end) + ")");
  }
  return view.data[at - view.begin];
}

// Sums term(value) in double: eight sums side by side, always merged in the same order.
template <class Real, class Term>
double sum(const Real* x, int n, const Term& term) {
  constexpr int kSums = 8;
  double sums[kSums] = {};
  int i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int k = 0; k < kSums; ++k) sums[k] += term(static_cast<double>(x[i + k]));
  for (int k = 0; i < n; ++i, ++k) sums[k] += term(static_cast<double>(x[i]));
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// Steele, Lea and Flood's SplitMix64 finaliser: every bit of x reaches every bit of the result.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

Padding padding_of(const MelPlan& plan) {
  const MelOptions& o = plan.options();
  const bool is_ramp = o.pad_mode == PadMode::linear_ramp && o.pad.value_or(0) > 0;
  Padding out{o.pad_mode, o.pad_zeros, is_ramp ? *o.pad : 0};
  if (o.partial_frames != MelOptions::PartialFrames::none) out.silent_from = plan.padding_behind();
  out.is_plain = out.zeros == 0 && out.silent_from == Padding::kNever;
  return out;
}

template <class Sample>
void gather(const SignalView<Sample>& view, std::int64_t start, std::int64_t n, const MelPlan& plan,
            Sample* out) {
  const std::int64_t length = known_length(view);
  const Padding padding = padding_of(plan);
  const std::int64_t first = std::max<std::int64_t>(view.begin, 0);
  const std::int64_t last = std::min(view.end, length);
  for (std::int64_t i = 0; i < n; ++i) {
    if (start + i >= first && start + i < last) {  // all the utterance's own at once
      const std::int64_t own = std::min(n - i, last - start - i);
      std::copy_n(view.data + (start + i - view.begin), own, out + i);
      i += own;
      if (i == n) break;
    }
    const std::int64_t at = padded_index(start + i, length, padding);
    out[i] = at == kSilence ? Sample{} : sample_at(view, at);
  }
}

// Box and Muller (1958): samples 2p and 2p + 1 are the two values of one pair, from 53 and 32 bits
// of a hash of p.
double Noise::at(std::int64_t index) {
  const std::int64_t pair = index >> 1;
  if (pair != pair_) {
    pair_ = pair;
    const std::uint64_t h = mixed(base_ + static_cast<std::uint64_t>(pair));
    const double uniform = static_cast<double>((h >> 11) + 1) * 0x1p-53;  // (0, 1]
    const double angle = 2.0 * std::numbers::pi * (static_cast<double>(mixed(h) >> 32) * 0x1p-32);
    const double radius = std::sqrt(-2.0 * std::log(uniform));
    values_[0] = radius * std::cos(angle);
    values_[1] = radius * std::sin(angle);
  }
  return values_[index & 1];
}

Noise::Noise(std::int64_t seed, std::uint64_t key)
    : base_(mixed(mixed(static_cast<std::uint64_t>(seed)) ^ key)) {}

Conditioner::Conditioner(const MelPlan& plan) {
  const MelOptions& o = plan.options();
  length_ = plan.frame_length();
  window_begin_ = plan.window_begin();
  window_end_ = window_begin_ + plan.window_length();
  padding_ = padding_of(plan);
  scale_ = o.input_scale;
  dither_ = o.dither;
  seed_ = o.dither_seed;
  (o.preemphasis_of == MelOptions::PreemphasisOf::signal ? signal_preemphasis_
                                                         : frame_preemphasis_) = o.preemphasis;
  first_ = o.preemphasis_first;
  dropped_ = plan.dropped();
  remove_dc_ = o.remove_dc;
  raw_energy_ = o.use_energy && o.raw_energy;
  needed_ = dither_ > 0 || o.preemphasis > 0 || remove_dc_ || raw_energy_ || padding_.ramp > 0;
}

// Returns the utterance's first sample after pre-emphasis; at(i) is sample i before it.
template <class Real, class At>
Real Conditioner::first_sample(const At& at, bool is_alone) const {
  using First = MelOptions::PreemphasisFirst;
  const Real x0 = at(0);
  if (first_ == First::keep) return x0;
  const Real x1 = first_ == First::replicate || is_alone ? x0 : at(1);
  if (first_ == First::librosa) return Real{3} * x0 - x1;
  return x0 - static_cast<Real>(signal_preemphasis_) * x1;
}

// Applies scale, dither and pre-emphasis of the signal, then the padding.
template <class Sample, class Real>
void Conditioner::signal(const SignalView<Sample>& view, std::int64_t start, Real* out) const {
  const auto scale = static_cast<Real>(
      std::is_same_v<Sample, std::int16_t> ? scale_ * double{kInt16Scale} : scale_);
  const auto k = static_cast<Real>(signal_preemphasis_);
  const std::int64_t known_end = std::min(view.end, known_length(view));
  const bool inside = start >= view.begin && start + length_ <= known_end;
  if (inside && dither_ == 0 && (k == 0 || start > view.begin)) {
    const Sample* x = view.data + (start - view.begin);
    if (k == 0) {
      for (int i = 0; i < length_; ++i) out[i] = static_cast<Real>(x[i]) * scale;
    } else {
      for (int i = 0; i < length_; ++i)
        out[i] = static_cast<Real>(x[i]) * scale - k * (static_cast<Real>(x[i - 1]) * scale);
    }
    return;
  }
  Noise noise(seed_, view.noise_key);
  const auto dithered = [&](std::int64_t at) {
    const Real value = static_cast<Real>(sample_at(view, at)) * scale;
    if (dither_ == 0) return value;
    return value + static_cast<Real>(dither_ * noise.at(view.noise_at + at));
  };
  const std::int64_t from = start - dropped_, length = known_length(view) - dropped_;
  for (int i = 0; i < length_; ++i) {
    std::int64_t at = padded_index(from + i, length, padding_);
    if (at != kSilence) at += dropped_;
    out[i] = at == kSilence     ? Real{0}
             : k > 0 && at == 0 ? first_sample<Real>(dithered, length == 1)
                                : dithered(at);
    if (k > 0 && at > 0) out[i] -= k * dithered(at - 1);
  }
  if (padding_.ramp == 0) return;
  for (int i = 0; i < length_; ++i)
    out[i] *= static_cast<Real>(ramp_at(from + i, length, padding_));
}

template <class Sample, class Real>
double Conditioner::frame(const SignalView<Sample>& view, std::int64_t start, Real* work,
                          Real* out) const {
  const bool emphasised = frame_preemphasis_ > 0;
  Real* const samples = emphasised ? work : out;
  signal(view, start, samples);
  Real* const x = samples + window_begin_;
  const int n = window_end_ - window_begin_;
  if (remove_dc_) {
    const auto mean = static_cast<Real>(sum(x, n, [](double v) { return v; }) / n);
    for (int i = 0; i < n; ++i) x[i] -= mean;
  }
  const double energy = raw_energy_ ? sum(x, n, [](double v) { return v * v; }) : 0.0;
  if (emphasised) {
    const auto k = static_cast<Real>(frame_preemphasis_);
    Real* const to = out + window_begin_;
    to[0] = x[0] - k * x[0];
    for (int i = 1; i < n; ++i) to[i] = x[i] - k * x[i - 1];
    // The window is 0 outside this range, but NaN times 0 is NaN.
    std::fill(out, to, Real{0});
    std::fill(to + n, out + length_, Real{0});
  }
  return energy;
}

template void gather<std::int16_t>(const SignalView<std::int16_t>&, std::int64_t, std::int64_t,
                                   const MelPlan&, std::int16_t*);
template void gather<float>(const SignalView<float>&, std::int64_t, std::int64_t, const MelPlan&,
                            float*);
template double Conditioner::frame(const SignalView<std::int16_t>&, std::int64_t, float*,
                                   float*) const;
template double Conditioner::frame(const SignalView<std::int16_t>&, std::int64_t, double*,
                                   double*) const;
template double Conditioner::frame(const SignalView<float>&, std::int64_t, float*, float*) const;
template double Conditioner::frame(const SignalView<float>&, std::int64_t, double*, double*) const;

bool takes_plain_samples(const MelPlan& plan) { return !Conditioner(plan).needed(); }

bool is_conditioned_by_frame(const MelPlan& plan) {
  const MelOptions& o = plan.options();
  const bool of_signal = o.preemphasis > 0 && o.preemphasis_of == MelOptions::PreemphasisOf::signal;
  return !takes_plain_samples(plan) && o.dither == 0 && !of_signal && padding_of(plan).ramp == 0;
}

}  // namespace melflow
