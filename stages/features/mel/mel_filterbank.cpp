// Everything is computed in double. Sources: HTK book 5.6; Slaney, Auditory Toolbox 1998 (linear
// below 1 kHz with 200/3 Hz a mel, above it 27 steps from 1 to 6.4 kHz); Kaldi's mel-computations
// for the triangles over mel and for the piecewise linear warp of the vocal tract length; HTK's
// HSigP.c, InitFBank, for the bins of htk_mode: htk; librosa.filters.mel for the norms 1, 2 and
// inf; torchaudio.functional.melscale_fbanks, SpeechBrain's Filterbank and Lhotse's
// create_mel_scale for the frequencies of bins.

#include "stages/features/mel/mel_filterbank.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace melflow {
namespace {

using Scale = MelOptions::MelScale;

constexpr double slaney_hz_per_mel = 200.0 / 3.0;
constexpr double slaney_break_hz = 1000.0;
constexpr double slaney_break_mel = slaney_break_hz / slaney_hz_per_mel;
const double slaney_log_step = std::log(6.4) / 27.0;

// Linear with slope 1/warp in the middle, bent at both ends to keep fmin and fmax.
double warped_hz(const MelOptions& o, double hz) {
  const double low = o.fmin;
  const double high = *o.fmax;
  if (o.vtln_warp == 1.0 || hz < low || hz > high) return hz;
  const double left = o.vtln_low * std::max(1.0, o.vtln_warp);
  const double right = o.vtln_high * std::min(1.0, o.vtln_warp);
  const double slope = 1.0 / o.vtln_warp;
  if (hz < left) return low + (slope * left - low) / (left - low) * (hz - low);
  if (hz < right) return slope * hz;
  return high + (high - slope * right) / (high - right) * (hz - high);
}

struct Triangle {
  double left = 0, centre = 0, right = 0;  // [Hz], or [mel] for triangles over mel
};

double weight_at(const Triangle& t, double x) {
  return std::min((x - t.left) / (t.centre - t.left), (t.right - x) / (t.right - t.centre));
}

// Returns the distance of neighbouring bins at which triangles are evaluated.
double bin_step(const MelOptions& o) {
  using BinHz = MelOptions::BinHz;
  const double rate = filter_rate(o);
  if (o.bin_hz == BinHz::exact) return rate / o.n_fft;
  if (o.bin_hz == BinHz::lhotse) return rate / (o.n_fft - 1);
  const int last = o.n_fft / 2;
  return std::floor(rate / 2.0) / last;
}

// Returns the divisor of a band's weights in librosa.util.normalize.
double norm_of(std::span<const double> weights, MelOptions::MelNorm norm) {
  using MelNorm = MelOptions::MelNorm;
  double out = 0.0;
  for (const double w : weights) {
    if (norm == MelNorm::sum) out += w;
    if (norm == MelNorm::root) out += w * w;
    if (norm == MelNorm::max) out = std::max(out, w);
  }
  return norm == MelNorm::root ? std::sqrt(out) : out;
}

double hz_to_mel(double hz, Scale scale) {
  switch (scale) {
    case Scale::htk:
      return 2595.0 * std::log10(1.0 + hz / 700.0);
    case Scale::kaldi:
      return 1127.0 * std::log(1.0 + hz / 700.0);
    case Scale::slaney:
      break;
  }
  if (hz < slaney_break_hz) return hz / slaney_hz_per_mel;
  return slaney_break_mel + std::log(hz / slaney_break_hz) / slaney_log_step;
}

double mel_to_hz(double mel, Scale scale) {
  switch (scale) {
    case Scale::htk:
      return 700.0 * (std::pow(10.0, mel / 2595.0) - 1.0);
    case Scale::kaldi:
      return 700.0 * (std::exp(mel / 1127.0) - 1.0);
    case Scale::slaney:
      break;
  }
  if (mel < slaney_break_mel) return mel * slaney_hz_per_mel;
  return slaney_break_hz * std::exp(slaney_log_step * (mel - slaney_break_mel));
}

Filterbank given_filterbank(const MelOptions& o) {
  const std::vector<double> matrix = filter_matrix(o);
  const int n_bins = o.n_fft / 2 + 1;
  Filterbank bank;
  for (int m = 0; m < o.n_mels; ++m) {
    const auto row = std::span(matrix).subspan(static_cast<std::size_t>(m) * n_bins,
                                               static_cast<std::size_t>(n_bins));
    MelBand band;
    band.offset = static_cast<int>(bank.weights.size());
    const auto is_weight = [](double w) { return w != 0.0; };
    const auto first = std::find_if(row.begin(), row.end(), is_weight);
    if (first != row.end()) {
      const auto end = std::find_if(row.rbegin(), row.rend(), is_weight).base();
      band.first_bin = static_cast<int>(first - row.begin());
      band.count = static_cast<int>(end - first);
      bank.weights.insert(bank.weights.end(), first, end);
    }
    const auto peak = std::max_element(row.begin(), row.end()) - row.begin();
    band.centre_hz = static_cast<double>(peak) * o.sample_rate / o.n_fft;
    bank.bands.push_back(band);
  }
  return bank;
}

}  // namespace

std::vector<double> filter_matrix(const MelOptions& o) {
  const auto& [numbers, rows, columns, file] = o.filters;
  if (rows == o.n_mels && columns == o.n_fft / 2 + 1) return numbers;
  std::vector<double> out;
  out.reserve(numbers.size());
  for (int c = 0; c < columns; ++c)
    for (int r = 0; r < rows; ++r)
      out.push_back(numbers[static_cast<std::size_t>(r) * columns + static_cast<std::size_t>(c)]);
  return out;
}

Filterbank make_filterbank(const MelOptions& o) {
  if (!o.filters.numbers.empty()) return given_filterbank(o);
  const bool over_mel = o.triangles == MelOptions::Triangles::mel;
  const double mel_low = hz_to_mel(o.fmin, o.mel_scale);
  const double mel_high = hz_to_mel(*o.fmax, o.mel_scale);
  const auto corner_hz = [&](int i) {
    const double mel = mel_low + (mel_high - mel_low) * i / (o.n_mels + 1);
    return warped_hz(o, mel_to_hz(mel, o.mel_scale));
  };
  const double bin_hz = bin_step(o);
  const int n_bins = o.n_fft / 2 + 1;
  // A smaller weight is the rounding error of a bin exactly on a corner.
  constexpr double rounding = 1e-12;

  Filterbank bank;
  bool skip_first = o.htk_mode == MelOptions::HtkMode::kaldi && o.fmin > 0.0;
  int lowest = 0, highest = n_bins - 1;
  if (o.htk_mode == MelOptions::HtkMode::htk) {
    const auto nearest = [bin_hz](double hz) {
      return static_cast<int>(std::floor(hz / bin_hz + 0.5));
    };
    lowest = nearest(o.fmin) + 1;
    highest = std::min(highest, nearest(*o.fmax) - 1);
  }
  for (int m = 0; m < o.n_mels; ++m) {
    Triangle hz{corner_hz(m), corner_hz(m + 1), corner_hz(m + 2)};
    if (o.triangles == MelOptions::Triangles::left_width) {
      hz.right = hz.centre + (hz.centre - hz.left);
    }
    const double scale =
        o.mel_norm == MelOptions::MelNorm::slaney ? 2.0 / (hz.right - hz.left) : 1.0;
    Triangle t = hz;
    if (over_mel) {
      t = {hz_to_mel(hz.left, o.mel_scale), hz_to_mel(hz.centre, o.mel_scale),
           hz_to_mel(hz.right, o.mel_scale)};
    }
    MelBand band;
    band.centre_hz = hz.centre;
    band.offset = static_cast<int>(bank.weights.size());
    const int first = std::max(lowest, static_cast<int>(std::floor(hz.left / bin_hz)));
    const int last = std::min(highest, static_cast<int>(std::ceil(hz.right / bin_hz)));
    for (int k = first; k <= last; ++k) {
      const double at = k * bin_hz;
      const double weight = weight_at(t, over_mel ? hz_to_mel(at, o.mel_scale) : at);
      if (!(weight > rounding)) continue;
      if (m == 0 && std::exchange(skip_first, false)) continue;
      if (band.count == 0) band.first_bin = k;
      ++band.count;
      bank.weights.push_back(weight * scale);
    }
    const auto of_band = std::span(bank.weights).subspan(static_cast<std::size_t>(band.offset));
    if (const double norm = norm_of(of_band, o.mel_norm); norm > 0.0)
      for (double& weight : of_band) weight /= norm;
    bank.bands.push_back(band);
  }
  return bank;
}

}  // namespace melflow
