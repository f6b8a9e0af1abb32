// kernel_checks.h - front ends, batches and comparisons for the kernels' tests, on host and device.
//
// In:  a front end's options and a recording.
// Out: the batch in the kernels' work format (cuda/mel_tables.h), the rows of the definition in
//      double precision (tests/support/reference_mel.h), and the distance of rows from them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/mel_tables.h"
#include "cuda/number_types.h"
#include "stages/features/mel/mel_options.h"
#include "stages/features/mel/mel_plan.h"
#include "tests/support/reference_mel.h"

namespace melflow::cuda::testing {

struct Named {
  std::string name;
  MelOptions options;
};

// The presets without steps over whole utterances, and every setting that matters to a kernel, for
// one n_fft.
std::vector<Named> front_ends(int n_fft);

// For reference::click, which takes every position in a frame.
MelOptions of_clicks(int n_fft, int n_mels);
// Two gliding tones with an offset, on noise 60 dB below full scale.
std::vector<std::int16_t> recording(std::int64_t n);
// Scales to full scale 1.
std::vector<double> exact(const std::vector<std::int16_t>& samples);

// The frames of an utterance; frames that extend beyond its ends are gathered after it. Frames that
// the host conditions are floats, one after another.
struct Batch {
  std::vector<std::int16_t> int16;  // empty for conditioned frames
  std::vector<float> float32;       // the same values, full scale 1
  std::vector<std::uint32_t> offsets;

  const void* samples(SampleType type) const;
  std::size_t n_frames() const { return offsets.size(); }
};
Batch make_batch(const MelPlan& plan, const std::vector<std::int16_t>& samples);
// Rows [n_frames, columns] of any type; every value is NaN until it is written.
class RowBuffer {
 public:
  RowBuffer(NumberType type, std::size_t values);
  void* data() { return bytes_.data(); }
  std::size_t size_bytes() const { return bytes_.size() * sizeof(std::uint32_t); }
  std::vector<double> values() const;
  // Returns the stored bits of 16-bit rows.
  std::vector<std::uint16_t> halves() const;

 private:
  NumberType type_;
  std::size_t count_;
  std::vector<std::uint32_t> bytes_;
};

struct Errors {
  double of_peak = 0.0;  // of a value, relative to its frame's largest value
  double db = 0.0;       // of a level within 60 dB of it [dB]
};
// For all front_ends. cuFFT computes sizes with a large prime factor as a convolution, whose error
// is larger.
constexpr Errors fused_limits = {1e-6, 1e-3};
constexpr Errors cufft_limits = {3e-6, 5e-3};
constexpr Errors fp16_operand_limits = {2e-3, 2.0};
constexpr Errors bf16_operand_limits = {1.5e-2, 10.0};
void widen(Errors& worst, const Errors& more);

// Return the options without a log, and with Log::db and amin 1e-30.
MelOptions linear(MelOptions options);
MelOptions in_db(MelOptions options);
Errors errors_of(const MelOptions& linear, const reference::Rows& expected,
                 const std::vector<double>& values, const std::vector<double>& levels);

// Returns the largest difference of levels, in units of the log.
double level_error(const MelPlan& plan, const reference::Rows& expected,
                   const std::vector<double>& rows);

}  // namespace melflow::cuda::testing
