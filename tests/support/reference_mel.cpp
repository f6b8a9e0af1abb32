#include "tests/support/reference_mel.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <numeric>
#include <stdexcept>

namespace melflow::reference {
namespace {

using O = MelOptions;
using std::numbers::pi;

int win_length(const O& o) { return o.win_length.value_or(o.n_fft); }
int hop(const O& o) { return o.hop.value_or(std::max(1, win_length(o) / 2)); }
bool is_left(const O& o) { return o.align == O::Align::left; }
int frame_length(const O& o) { return is_left(o) ? win_length(o) : o.n_fft; }
int window_begin(const O& o) { return is_left(o) ? 0 : (o.n_fft - win_length(o)) / 2; }
int rate_of_filters(const O& o) { return o.filter_rate ? *o.filter_rate : o.sample_rate; }
double from_nyquist(const O& o, double hz) { return hz > 0 ? hz : rate_of_filters(o) / 2.0 + hz; }
double fmax(const O& o) {
  const double given = o.fmax.value_or(0);
  const int whole_hz = rate_of_filters(o) / 2;
  if (given <= 0 && o.bin_hz == O::BinHz::torchaudio) return whole_hz + given;
  return from_nyquist(o, given);
}

// Modified Bessel function of the first kind, order 0, by its power series.
double bessel_i0(double x) {
  double sum = 1, term = 1;
  for (int k = 1; k < 2000 && term > 1e-20 * sum; ++k) {
    term *= x / 2 / k * (x / 2 / k);
    sum += term;
  }
  return sum;
}

double shape(const O& o, int i) {
  const int n = win_length(o);
  if (n == 1 && o.window != O::Window::values) return 1;
  const double period = o.periodic ? n : n - 1;
  const double x = 2 * pi * i / period;
  const double middle = i - period / 2;  // distance from the middle
  switch (o.window) {
    case O::Window::hann:
      return std::pow(std::sin(x / 2), 2);
    case O::Window::hamming:
      return o.hamming_alpha + (o.hamming_alpha - 1) * std::cos(x);
    case O::Window::blackman:
      return o.blackman_coeff - std::cos(x) / 2 + (0.5 - o.blackman_coeff) * std::cos(2 * x);
    case O::Window::nuttall:
      return 0.3635819 - 0.4891775 * std::cos(x) + 0.1365995 * std::cos(2 * x) -
             0.0106411 * std::cos(3 * x);
    case O::Window::bartlett:
      return i <= period / 2 ? 2 * i / period : 2 - 2 * i / period;
    case O::Window::cosine:
      return std::sin(pi * (i + 0.5) / (period + 1));
    case O::Window::sine:
      return std::sin(pi * i / period);
    case O::Window::tukey: {  // three pieces, as in scipy
      const double a = o.tukey_alpha, slope = a * period / 2;
      if (i < slope) return (1 + std::cos(pi * (2 * i / a / period - 1))) / 2;
      if (i > period - slope) return (1 + std::cos(pi * (1 - 2 / a + 2 * i / a / period))) / 2;
      return 1;
    }
    case O::Window::values:
      return o.window_values.numbers.at(static_cast<std::size_t>(i));
    case O::Window::blackman_harris:
      return 0.35875 - 0.48829 * std::cos(x) + 0.14128 * std::cos(2 * x) -
             0.01168 * std::cos(3 * x);
    case O::Window::kaiser: {
      const double r = middle / (period / 2);
      return bessel_i0(o.kaiser_beta * std::sqrt(std::max(0.0, 1 - r * r))) /
             bessel_i0(o.kaiser_beta);
    }
    case O::Window::gauss: {
      const double sigma = o.gauss_std.value_or(n / 8.0);
      return std::exp(-middle * middle / (2 * sigma * sigma));
    }
    case O::Window::povey:
      return std::pow(std::sin(x / 2), 1.7);
    case O::Window::boxcar:
      return 1;
  }
  return 1;
}

double to_mel(double hz, O::MelScale scale) {
  if (scale == O::MelScale::htk) return 2595 * std::log10(1 + hz / 700);
  if (scale == O::MelScale::kaldi) return 1127 * std::log(1 + hz / 700);
  return hz < 1000 ? hz * 3 / 200 : 15 + 27 * std::log(hz / 1000) / std::log(6.4);
}

double to_hz(double mel, O::MelScale scale) {
  if (scale == O::MelScale::htk) return 700 * (std::pow(10, mel / 2595) - 1);
  if (scale == O::MelScale::kaldi) return 700 * (std::exp(mel / 1127) - 1);
  return mel < 15 ? mel * 200 / 3 : 1000 * std::pow(6.4, (mel - 15) / 27);
}

// Three linear pieces: through (fmin, fmin), slope 1/warp between the cut-offs, through (fmax,
// fmax).
double warp(const O& o, double hz) {
  if (o.vtln_warp == 1 || hz < o.fmin || hz > fmax(o)) return hz;
  const double a = o.vtln_low * std::max(1.0, o.vtln_warp);
  const double b = from_nyquist(o, o.vtln_high) * std::min(1.0, o.vtln_warp);
  const auto line = [hz](double x0, double y0, double x1, double y1) {
    return y0 + (y1 - y0) * (hz - x0) / (x1 - x0);
  };
  if (hz < a) return line(o.fmin, o.fmin, a, a / o.vtln_warp);
  if (hz > b) return line(b, b / o.vtln_warp, fmax(o), fmax(o));
  return hz / o.vtln_warp;
}

std::vector<double> conditioned(const O& o, const std::vector<double>& samples) {
  if (o.dither > 0) throw std::invalid_argument("the reference knows no dither");
  std::vector<double> out = samples;
  for (double& x : out) x *= o.input_scale;
  if (o.preemphasis_of == O::PreemphasisOf::frame || o.preemphasis == 0 || out.empty()) return out;
  const double k = o.preemphasis, x0 = out[0], x1 = out.size() > 1 ? out[1] : x0;
  for (std::size_t i = out.size(); i-- > 1;) out[i] -= k * out[i - 1];
  switch (o.preemphasis_first) {
    case O::PreemphasisFirst::keep:
      break;
    case O::PreemphasisFirst::reflect:
      out[0] = x0 - k * x1;
      break;
    case O::PreemphasisFirst::drop:
      out.erase(out.begin());
      break;
    case O::PreemphasisFirst::replicate:
      out[0] = x0 - k * x0;
      break;
    case O::PreemphasisFirst::librosa:
      out[0] = 3 * x0 - x1;
      break;
  }
  return out;
}

// Returns all frames of an utterance, [frames][frame_length].
Rows frames(const O& o, const std::vector<double>& samples) {
  const auto n = static_cast<std::int64_t>(samples.size());
  const std::int64_t length = frame_length(o), step = hop(o);
  const std::int64_t zeros = o.pad_zeros, longer = n + 2 * zeros;
  const std::int64_t pad = o.pad.value_or(o.center ? static_cast<int>(length / 2) : 0);
  // Counts in the utterance with its zeros, shifted so that its own first sample is at 0.
  const bool ends_in_zeros = o.partial_frames != O::PartialFrames::none;
  const auto at = [&](std::int64_t i) {
    if (ends_in_zeros && i >= n + zeros + pad) return 0.0;
    const std::int64_t from = padded_index(i + zeros, longer, o.pad_mode) - zeros;
    const double value = from < 0 || from >= n ? 0 : samples[static_cast<std::size_t>(from)];
    const std::int64_t outside = std::max(-zeros - i, i - (n + zeros - 1));
    if (o.pad_mode != O::PadMode::linear_ramp || outside <= 0) return value;
    return value * static_cast<double>(pad - outside) / static_cast<double>(pad);
  };
  const auto cut = [&](std::int64_t start) {
    std::vector<double> frame;
    for (std::int64_t i = 0; i < length; ++i) frame.push_back(at(start + i));
    return frame;
  };
  Rows out;
  if (n == 0) return out;
  if (o.snip_edges == false) {
    for (std::int64_t t = 0; t < (n + step / 2) / step; ++t) {
      const std::int64_t middle = t * step + step / 2;
      out.push_back(cut(middle - length / 2));
    }
  } else {
    const std::int64_t end = n + zeros + pad;
    std::int64_t start = -zeros - pad;
    for (; start + length <= end; start += step) out.push_back(cut(start));
    if (o.partial_frames == O::PartialFrames::last) {
      // Whether the frames before it leave samples over.
      const std::int64_t covered = out.empty() ? start : start - step + length;
      if (covered < end) out.push_back(cut(start));
    }
    if (o.partial_frames == O::PartialFrames::all)
      for (; start < end; start += step) out.push_back(cut(start));
  }
  if (o.drop_last && !out.empty()) out.pop_back();
  const std::int64_t behind = n + 2 * (zeros + pad) - length;
  if (o.drop_exact && !o.drop_last && !out.empty() && behind % step == 0) out.pop_back();
  return out;
}

// Returns the frame ready for the transform, [n_fft], and the logarithm of its energy.
std::vector<double> windowed(const O& o, std::vector<double> frame, double& log_energy) {
  const auto begin = frame.begin() + window_begin(o), end = begin + win_length(o);
  if (o.remove_dc) {
    double mean = 0;
    for (auto x = begin; x != end; ++x) mean += *x / win_length(o);
    for (auto x = begin; x != end; ++x) *x -= mean;
  }
  const auto energy = [&] {
    double sum = 0;
    for (auto x = begin; x != end; ++x) sum += *x * *x;
    return std::log(std::max({sum, o.energy_floor, o.energy_eps}));
  };
  log_energy = energy();
  if (o.preemphasis_of == O::PreemphasisOf::frame && o.preemphasis > 0) {
    for (auto x = end - 1; x != begin; --x) *x -= o.preemphasis * *(x - 1);
    *begin *= 1 - o.preemphasis;
  }
  frame.resize(static_cast<std::size_t>(o.n_fft), 0);
  const std::vector<double> w = window(o);
  for (std::size_t i = 0; i < frame.size(); ++i) frame[i] *= w[i];
  if (!o.raw_energy) {
    double sum = 0;
    for (const double x : frame) sum += x * x;
    log_energy = std::log(std::max({sum, o.energy_floor, o.energy_eps}));
  }
  return frame;
}

double logarithm(const O& o, double value) {
  const bool is_htk = o.htk_mode == O::HtkMode::htk && o.log != O::Log::none;
  if (o.output == O::Output::mel && o.filters.numbers.empty() &&
      (is_htk || o.htk_mode == O::HtkMode::kaldi))
    value = std::max(value, 1.0);
  const double floored = std::max(value + o.log_offset, o.amin);
  const double ref = std::max(o.ref.value, o.amin);
  switch (o.log) {
    case O::Log::none:
      return value;
    case O::Log::ln:
      return std::log(floored) - std::log(ref);
    case O::Log::log10:
      return std::log10(floored) - std::log10(ref);
    case O::Log::db:
      return o.db_factor.value_or(20 / o.power) * (std::log10(floored) - std::log10(ref));
    case O::Log::piecewise: {
      // x[x > e] = log(x[x > e]); x[x <= e] = x[x <= e] / e
      if (value > std::numbers::e) value = std::log(value);
      if (value <= std::numbers::e) value /= std::numbers::e;
      return value;
    }
  }
  return value;
}

}  // namespace

std::vector<double> window(const O& o) {
  std::vector<double> values(static_cast<std::size_t>(o.n_fft), 0);
  double energy = 0;
  const auto begin = static_cast<std::size_t>(window_begin(o));
  for (int i = 0; i < win_length(o); ++i) {
    const double value = shape(o, i);
    values[begin + static_cast<std::size_t>(i)] = value;
    energy += value * value;
  }
  for (double& value : values) {
    if (o.normalized == O::Normalized::window) value /= std::sqrt(energy);
    if (o.normalized == O::Normalized::frame_length) value /= std::sqrt(o.n_fft);
  }
  return values;
}

Rows filterbank(const O& o) {
  if (const auto& [numbers, rows, columns, file] = o.filters; !numbers.empty()) {
    const bool is_transposed = rows != o.n_mels || columns != o.n_fft / 2 + 1;
    Rows out(static_cast<std::size_t>(o.n_mels));
    for (int m = 0; m < o.n_mels; ++m)
      for (int k = 0; k <= o.n_fft / 2; ++k)
        out[static_cast<std::size_t>(m)].push_back(
            numbers[static_cast<std::size_t>(is_transposed ? k * columns + m : m * columns + k)]);
    return out;
  }
  const double low = to_mel(o.fmin, o.mel_scale);
  const double step = (to_mel(fmax(o), o.mel_scale) - low) / (o.n_mels + 1);
  const int rate = rate_of_filters(o);
  double bin_spacing = static_cast<double>(rate) / o.n_fft;
  if (o.bin_hz == O::BinHz::lhotse) bin_spacing = rate / (o.n_fft - 1.0);
  const int top_hz = rate / 2, top_bin = o.n_fft / 2;  // integers in both libraries
  if (o.bin_hz == O::BinHz::torchaudio || o.bin_hz == O::BinHz::speechbrain)
    bin_spacing = static_cast<double>(top_hz) / top_bin;
  Rows bank;
  for (int m = 0; m < o.n_mels; ++m) {
    const double left = warp(o, to_hz(low + step * m, o.mel_scale));
    const double centre = warp(o, to_hz(low + step * (m + 1), o.mel_scale));
    double right = warp(o, to_hz(low + step * (m + 2), o.mel_scale));
    if (o.triangles == O::Triangles::left_width) right = 2 * centre - left;
    // The axis on which the flanks are straight.
    const auto axis = [&](double hz) {
      return o.triangles == O::Triangles::mel ? to_mel(hz, o.mel_scale) : hz;
    };
    std::vector<double> weights;
    for (int k = 0; k <= o.n_fft / 2; ++k) {
      const double hz = k * bin_spacing;
      double weight = 0;
      if (hz > left && hz <= centre) weight = (axis(hz) - axis(left)) / (axis(centre) - axis(left));
      if (hz > centre && hz < right)
        weight = (axis(right) - axis(hz)) / (axis(right) - axis(centre));
      // Kaldi's first band omits its first bin, whatever that bin would contribute.
      const double before = hz - bin_spacing;
      if (o.htk_mode == O::HtkMode::kaldi && m == 0 && o.fmin != 0 && hz > left && before <= left)
        weight = 0;
      // klo and khi of HTK's InitFBank, which counts bins from 1.
      const int klo = std::max(2, static_cast<int>(o.fmin / bin_spacing + 2.5));
      const int khi = static_cast<int>(fmax(o) / bin_spacing + 0.5);
      if (o.htk_mode == O::HtkMode::htk && (k + 1 < klo || k + 1 > khi)) weight = 0;
      if (weight < 1e-12) weight = 0;  // a bin on a corner, of which a norm would make a whole one
      if (o.mel_norm == O::MelNorm::slaney) weight *= 2 / (right - left);
      weights.push_back(weight);
    }
    double sum = 0, squares = 0, largest = 0;
    for (const double w : weights) {
      sum += w;
      squares += w * w;
      largest = std::max(largest, w);
    }
    for (double& w : weights) {
      if (sum == 0) break;
      if (o.mel_norm == O::MelNorm::sum) w /= sum;
      if (o.mel_norm == O::MelNorm::root) w /= std::sqrt(squares);
      if (o.mel_norm == O::MelNorm::max) w /= largest;
    }
    bank.push_back(weights);
  }
  return bank;
}

std::int64_t padded_index(std::int64_t i, std::int64_t n, O::PadMode mode) {
  if (i >= 0 && i < n) return i;
  if (mode == O::PadMode::constant) return -1;
  if (mode == O::PadMode::edge || mode == O::PadMode::linear_ramp) return i < 0 ? 0 : n - 1;
  if (n == 1) return 0;
  const std::int64_t repeated = mode == O::PadMode::symmetric ? 1 : 0;
  while (i < 0 || i >= n) i = i < 0 ? -i - repeated : 2 * (n - 1) - i + repeated;
  return i;
}

Rows mel(const O& o, const std::vector<double>& samples) {
  const Rows bank = o.output == O::Output::mel ? filterbank(o) : Rows{};
  const auto n = static_cast<std::size_t>(o.n_fft);
  std::vector<double> cosine, sine;
  for (std::size_t i = 0; i < n; ++i) {
    cosine.push_back(std::cos(2 * pi * static_cast<double>(i) / static_cast<double>(n)));
    sine.push_back(std::sin(2 * pi * static_cast<double>(i) / static_cast<double>(n)));
  }
  Rows rows;
  for (const std::vector<double>& cut : frames(o, conditioned(o, samples))) {
    double log_energy = 0;
    const std::vector<double> frame = windowed(o, cut, log_energy);
    std::vector<double> spectrum;
    for (std::size_t k = 0; k <= n / 2; ++k) {
      double re = 0, im = 0;
      for (std::size_t i = 0; i < n; ++i) {
        re += frame[i] * cosine[k * i % n];
        im -= frame[i] * sine[k * i % n];
      }
      double square = std::max(re * re + im * im + o.power_offset, o.power_floor);
      if (o.power_ceiling) square = std::min(square, *o.power_ceiling);
      spectrum.push_back(std::pow(square, o.power / 2));
    }
    std::vector<double> row;
    if (o.output == O::Output::spectrogram) row = spectrum;
    for (const std::vector<double>& weights : bank) {
      double sum = 0;
      for (std::size_t k = 0; k <= n / 2; ++k) sum += weights[k] * spectrum[k];
      row.push_back(sum);
    }
    for (double& value : row) value = logarithm(o, value);
    if (o.use_energy) row.insert(o.htk_compat ? row.end() : row.begin(), log_energy);
    rows.push_back(row);
  }
  return rows;
}

std::vector<std::int16_t> click(int n_fft) {
  const auto n = static_cast<std::size_t>(n_fft);
  std::vector<std::int16_t> samples(2 * n - 1, 0);
  samples[n - 1] = -32768;
  return samples;
}

Rows click_rows(const O& o) {
  std::vector<double> sums;
  for (const std::vector<double>& weights : filterbank(o))
    sums.push_back(std::accumulate(weights.begin(), weights.end(), 0.0));
  const std::vector<double> w = window(o);
  Rows rows;
  for (int at = o.n_fft - 1; at >= 0; at -= hop(o)) {
    const double power = std::pow(std::abs(w[static_cast<std::size_t>(at)]), o.power);
    std::vector<double>& row = rows.emplace_back(sums);
    for (double& value : row) value *= power;
  }
  return rows;
}

void finish(const O& o, Rows& rows) {
  if (rows.empty()) return;
  double largest = -1e300;
  for (const auto& row : rows)
    largest = std::max(largest, *std::max_element(row.begin(), row.end()));
  double range = o.top_db.value_or(0);
  if (o.log != O::Log::db) range *= o.power / 20;
  if (o.log == O::Log::ln) range *= std::log(10);
  for (auto& row : rows) {
    for (double& value : row) {
      if (o.top_db) value = std::max(value, largest - range);
      if (o.ref.is_max) value -= largest;
    }
  }
  if (o.normalize == O::Normalize::none) return;
  const std::size_t columns = rows[0].size();
  const auto given = [&](const std::vector<double>& v, std::size_t c, double fallback) {
    return v.empty() ? fallback : v[v.size() == 1 ? 0 : c];
  };
  const bool all = o.normalize == O::Normalize::all_features;
  for (std::size_t c = 0; c < columns; ++c) {
    double mean = given(o.norm_mean, c, 0), divisor = given(o.norm_std, c, 1);
    if (o.normalize != O::Normalize::fixed && (c == 0 || !all)) {
      std::vector<double> x;
      for (const auto& row : rows)
        for (std::size_t k = 0; k < columns; ++k)
          if (all || k == c) x.push_back(row[k]);
      mean = 0;
      for (const double v : x) mean += v / static_cast<double>(x.size());
      double squares = 0;
      for (const double v : x) squares += (v - mean) * (v - mean);
      const auto n = static_cast<double>(x.size());
      const double variance = n > o.norm_ddof ? squares / (n - o.norm_ddof) : 0;
      divisor = o.norm_eps_to == O::NormEpsTo::variance ? std::sqrt(variance + o.norm_eps)
                                                        : std::sqrt(variance) + o.norm_eps;
    }
    if (!o.norm_variance) divisor = 1;
    for (auto& row : rows) {
      if (all) {
        for (double& value : row) value = (value - mean) / divisor;
      } else {
        row[c] = (row[c] - mean) / divisor;
      }
    }
    if (all) break;
  }
}

std::vector<double> dct(const std::vector<double>& row, int count, int type, bool ortho) {
  const auto n = static_cast<double>(row.size());
  std::vector<double> out;
  for (int k = 0; k < count; ++k) {
    double sum = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto x = static_cast<double>(i);
      if (type == 2) sum += 2 * row[i] * std::cos(pi * k * (2 * x + 1) / (2 * n));
      // scipy: x[0] + 2 sum; orthogonal: x[0] / sqrt(n) + sqrt(2 / n) sum
      if (type == 3)
        sum += row[i] * std::cos(pi * (2.0 * k + 1) * x / (2 * n)) *
               (i == 0 ? (ortho ? 1 / std::sqrt(n) : 1) : (ortho ? std::sqrt(2 / n) : 2));
    }
    if (type == 2 && ortho) sum *= k == 0 ? std::sqrt(1 / (4 * n)) : std::sqrt(1 / (2 * n));
    out.push_back(sum);
  }
  return out;
}

}  // namespace melflow::reference
