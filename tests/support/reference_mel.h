// reference_mel.h - a mel spectrogram straight from its definition, for tests.
//
// In:  MelOptions and a unit's samples, in double.
// Out: rows [frames, n_mels], in double.
//
// Nothing is shared with the code under test but the options struct: the transform is the sum of
// the definition, filters are full triangles, a padded signal is built as a whole.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "stages/mel_plan.h"

namespace melflow::reference {

using Rows = std::vector<std::vector<double>>;

inline std::vector<double> window(const MelOptions& o) {
  const int length = o.win_length.value_or(o.n_fft);
  const double period = o.periodic ? length : length - 1;
  std::vector<double> values(static_cast<std::size_t>(o.n_fft), 0.0);
  double energy = 0.0;
  for (int i = 0; i < length; ++i) {
    const double x = length == 1 ? std::numbers::pi : 2.0 * std::numbers::pi * i / period;
    double value = 1.0;
    if (o.window == MelOptions::Window::hann) value = std::pow(std::sin(x / 2.0), 2.0);
    if (o.window == MelOptions::Window::hamming) value = 0.54 - 0.46 * std::cos(x);
    if (o.window == MelOptions::Window::blackman) {
      value = 0.42 - 0.5 * std::cos(x) + 0.08 * std::cos(2.0 * x);
    }
    values[static_cast<std::size_t>((o.n_fft - length) / 2 + i)] = value;
    energy += value * value;
  }
  for (double& value : values) {
    if (o.normalized == MelOptions::Normalized::window) value /= std::sqrt(energy);
    if (o.normalized == MelOptions::Normalized::frame_length) value /= std::sqrt(o.n_fft);
  }
  return values;
}

inline double to_mel(double hz, bool htk) {
  if (htk) return 2595.0 * std::log10(1.0 + hz / 700.0);
  return hz < 1000.0 ? hz * 3.0 / 200.0 : 15.0 + 27.0 * std::log(hz / 1000.0) / std::log(6.4);
}

inline double to_hz(double mel, bool htk) {
  if (htk) return 700.0 * (std::pow(10.0, mel / 2595.0) - 1.0);
  return mel < 15.0 ? mel * 200.0 / 3.0 : 1000.0 * std::pow(6.4, (mel - 15.0) / 27.0);
}

inline Rows filterbank(const MelOptions& o) {
  const bool htk = o.mel_scale == MelOptions::MelScale::htk;
  const double low = to_mel(o.fmin, htk);
  const double step = (to_mel(o.fmax.value_or(o.sample_rate / 2.0), htk) - low) / (o.n_mels + 1);
  Rows bank;
  for (int m = 0; m < o.n_mels; ++m) {
    const double left = to_hz(low + step * m, htk);
    const double centre = to_hz(low + step * (m + 1), htk);
    const double right = to_hz(low + step * (m + 2), htk);
    std::vector<double> weights;
    for (int k = 0; k <= o.n_fft / 2; ++k) {
      const double hz = static_cast<double>(k) * o.sample_rate / o.n_fft;
      double weight = 0.0;
      if (hz > left && hz <= centre) weight = (hz - left) / (centre - left);
      if (hz > centre && hz < right) weight = (right - hz) / (right - centre);
      if (o.mel_norm == MelOptions::MelNorm::slaney) weight *= 2.0 / (right - left);
      weights.push_back(weight);
    }
    bank.push_back(weights);
  }
  return bank;
}

// Index of the sample that stands at i of a unit of n samples; -1 for a zero.
inline std::int64_t padded_index(std::int64_t i, std::int64_t n, MelOptions::PadMode mode) {
  if (i >= 0 && i < n) return i;
  if (mode == MelOptions::PadMode::constant) return -1;
  if (mode == MelOptions::PadMode::edge) return i < 0 ? 0 : n - 1;
  if (n == 1) return 0;
  const std::int64_t period = 2 * (n - 1);
  const std::int64_t phase = ((i % period) + period) % period;
  return std::min(phase, period - phase);
}

inline std::vector<double> pad(const MelOptions& o, const std::vector<double>& samples) {
  if (!o.center) return samples;
  const auto n = static_cast<std::int64_t>(samples.size());
  std::vector<double> padded;
  for (std::int64_t i = -(o.n_fft / 2); i < n + o.n_fft / 2; ++i) {
    const std::int64_t at = padded_index(i, n, o.pad_mode);
    padded.push_back(at < 0 ? 0.0 : samples[static_cast<std::size_t>(at)]);
  }
  return padded;
}

inline double logarithm(const MelOptions& o, double value) {
  const double floored = std::max(value + o.log_offset, o.amin);
  const double ref = std::max(o.ref, o.amin);
  switch (o.log) {
    case MelOptions::Log::none:
      break;
    case MelOptions::Log::ln:
      return std::log(floored) - std::log(ref);
    case MelOptions::Log::log10:
      return std::log10(floored) - std::log10(ref);
    case MelOptions::Log::db:
      return 20.0 / o.power * (std::log10(floored) - std::log10(ref));
  }
  return value;
}

// Without ref_max and top_db.
inline Rows mel(const MelOptions& o, const std::vector<double>& samples) {
  Rows rows;
  if (samples.empty()) return rows;
  const std::vector<double> padded = pad(o, samples);
  const std::vector<double> shape = window(o);
  const Rows bank = filterbank(o);
  const auto n = static_cast<std::size_t>(o.n_fft);
  const int win_length = o.win_length.value_or(o.n_fft);
  const auto hop = static_cast<std::size_t>(o.hop.value_or(std::max(1, win_length / 2)));
  for (std::size_t start = 0; start + n <= padded.size(); start += hop) {
    std::vector<double> magnitude;
    for (std::size_t k = 0; k <= n / 2; ++k) {
      double re = 0.0;
      double im = 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        const double angle =
            2.0 * std::numbers::pi * static_cast<double>(k * i % n) / static_cast<double>(n);
        re += padded[start + i] * shape[i] * std::cos(angle);
        im -= padded[start + i] * shape[i] * std::sin(angle);
      }
      magnitude.push_back(std::pow(std::hypot(re, im), o.power));
    }
    std::vector<double> row;
    for (const std::vector<double>& weights : bank) {
      double sum = 0.0;
      for (std::size_t k = 0; k <= n / 2; ++k) sum += weights[k] * magnitude[k];
      row.push_back(logarithm(o, sum));
    }
    rows.push_back(row);
  }
  return rows;
}

// ref_max and top_db of a whole unit.
inline void finish(const MelOptions& o, Rows& rows) {
  double largest = -1e300;
  for (const auto& row : rows)
    largest = std::max(largest, *std::max_element(row.begin(), row.end()));
  for (auto& row : rows) {
    for (double& value : row) {
      if (o.top_db) value = std::max(value, largest - *o.top_db);
      if (o.ref_max) value -= largest;
    }
  }
}

}  // namespace melflow::reference
