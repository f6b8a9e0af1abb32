// mel_plan.h - a mel spectrogram's definition, computed once per run and shared by all backends.
//
// In:  MelOptions (mel_options.h), the settings as a user writes them.
// Out: MelPlan, immutable: resolved options, analysis window [frame_length], sparse filterbank
//      (per band: first bin, count, weights) and the frame geometry of an utterance.
//
// An utterance is a unit of transformation: a whole file or one segment. Frame t of an utterance
// covers its samples [start(t), start(t) + frame_length), followed by zeros up to n_fft.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stages/features/mel/mel_filterbank.h"
#include "stages/features/mel/mel_options.h"

namespace melflow {

class MelPlan {
 public:
  // Throws std::invalid_argument with one line for each problem of check(options).
  explicit MelPlan(const MelOptions& options);

  // Resolved: every derived default has its value.
  const MelOptions& options() const { return options_; }
  int n_fft() const { return options_.n_fft; }
  int hop() const { return *options_.hop; }
  int n_mels() const { return options_.n_mels; }
  int n_bins() const { return options_.n_fft / 2 + 1; }
  // The number of values of a frame.
  int columns() const { return columns_; }
  // The column of the energy, or -1; the bands or bins take the other columns, in order.
  int energy_column() const;

  // Samples that a frame takes: n_fft, or win_length if the window is left-aligned.
  int frame_length() const { return frame_length_; }
  // The utterance's sample at which a frame begins; negative in the padding.
  std::int64_t start(std::int64_t frame) const { return frame * hop() - lead_ + dropped_; }
  // Samples at the utterance's start that are in no frame; the padding begins behind them.
  int dropped() const { return dropped_; }
  // Samples of padding behind an utterance; positions after them are zeros.
  std::int64_t padding_behind() const { return lead_; }
  // [frame_length], zero outside win_length, including the factor of `normalized`.
  std::span<const double> window_double() const { return window_double_; }
  std::span<const float> window() const { return window_; }
  // The window's position in the frame.
  int window_begin() const { return window_begin_; }
  int window_length() const { return *options_.win_length; }

  // For Output::mel; empty for a spectrogram.
  std::span<const MelBand> bands() const { return bands_; }    // [n_mels]
  std::span<const float> weights() const { return weights_; }  // bands one after another
  // Bands so narrow that no FFT bin falls inside: their value is always 0. Worth a warning.
  int empty_bands() const { return empty_bands_; }
  // Centre frequency of each column [Hz]; NaN for the energy.
  std::vector<double> column_hz() const;

  // Factor and shift of the log, so that out = log_factor * ln(max(amin, x + log_offset)) -
  // log_shift. Meaningless when log is none.
  double log_factor() const { return log_factor_; }
  double log_shift() const { return log_shift_; }

  // The number of frames of an utterance of n_samples, of which dropped() do not count. Centred:
  // 1 + n/hop for even n_fft; else 1 + (n - frame)/hop; with snip_edges: false, (n + hop/2)/hop;
  // one less with drop_last, and with drop_exact where the division leaves no remainder.
  // partial_frames rounds up: 1 + (n - frame)/hop (last), n/hop (all). 0 for an utterance without
  // samples, and for an unpadded one shorter than a frame without partial_frames.
  std::int64_t frames(std::int64_t n_samples) const;
  // The number of frames that can be computed when the first n_seen samples of an utterance are
  // known, but not whether more follow. Never more than frames(n_seen).
  std::int64_t frames_ready(std::int64_t n_seen) const;
  // The number of samples to keep: once every ready frame of n_seen samples is computed, the
  // remaining ones (wherever the utterance ends, including right padding) need no sample before
  // n_seen - context().
  std::int64_t context() const;

 private:
  void make_bands();

  MelOptions options_;
  int columns_ = 0;
  int frame_length_ = 0;
  int window_begin_ = 0;
  int dropped_ = 0;
  std::int64_t lead_ = 0;  // frame 0 starts that many samples before the utterance; may be negative
  std::vector<double> window_double_;
  std::vector<float> window_;
  std::vector<MelBand> bands_;
  std::vector<float> weights_;
  int empty_bands_ = 0;
  double log_factor_ = 1.0;
  double log_shift_ = 0.0;
};

}  // namespace melflow
