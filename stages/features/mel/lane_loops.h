// lane_loops.h - the inner loops of the mel kernel: one frame in each lane of a vector, as many
// frames at once as the vector is wide.
//
// In:  samples of `width` frames, and the tables of one run.
// Out: power [n_bins][width], then one row a frame: [n_mels], or [n_bins] for a spectrogram.
//
// Values never move between lanes, so a frame's bytes depend neither on its lane nor on its
// neighbours. Compiled once for each instruction set (lane_loops_body.h).

#pragma once

#include <cstdint>

namespace melflow::lanes {

constexpr int max_width = 16;

// One step of the transform: splits blocks of `size` points into `radix` blocks each.
struct Pass {
  int radix = 0;
  int size = 0;
  const float* twiddle = nullptr;  // [size/radix][radix-1] re, im of exp(-2 pi i j q / size)
};

// Constants of a run. Plain pointers into memory that LaneTables owns: the code for the wider
// instruction sets must not share any inline function with the rest of the program.
struct RunTables {
  int frame_length = 0;
  int n_bins = 0;

  // A transform of n_fft real samples is one of n_fft/2 complex points, sample pairs. points = 0:
  // RealFft does the transform.
  int points = 0;
  int n_passes = 0;
  Pass passes[32];
  int last_radix = 0;            // of the last step, which also computes the power
  const std::int32_t* block_at;  // [points/last_radix]: position of the points of block k0
  const float* turn = nullptr;   // [points+1] re, im of -i exp(-2 pi i k / n_fft)

  double power = 2.0;
  float power_offset = 0.0F;
  bool is_limited = false;  // from power_floor to power_ceiling, after power_offset
  float power_floor = 0.0F, power_ceiling = 0.0F;

  int n_mels = 0;                           // 0: the bins themselves are the row
  const std::int32_t* first_bin = nullptr;  // [n_mels]
  const std::int32_t* n_weights = nullptr;  // [n_mels]
  const float* weights = nullptr;           // bands one after another

  bool has_steps = false;  // whether values have a floor or a piecewise logarithm
  float floor = 0.0F;      // of a value before its level; 0: none
  bool piecewise = false;  // level = value/e up to e, ln(value)/e up to e^e, then ln(value)
  // With a log, level = factor * ln(max(amin, value + offset)) - shift.
  bool log = false;
  float amin = 0.0F;
  float offset = 0.0F;
  float factor = 1.0F;
  float shift = 0.0F;
};

// A transform of one frame in double (own_fft.h). A step makes radix * run transforms of `parts`
// points of run transforms of radix * parts points.
struct FftPass {
  int radix = 0, parts = 0, run = 0;
  // exp(-2 pi i p k / (radix * parts)) for p < parts, 0 < k < radix: [parts][radix-1] re, im; where
  // run is 1, [radix-1][re, im][parts].
  const double* twiddle = nullptr;
};

struct FftTables {
  static constexpr int padding = 8;  // numbers after the last one of an array: a vector's width
  struct Points {
    const double *re = nullptr, *im = nullptr;
  };

  int n = 0;        // real samples
  int points = 0;   // complex ones: of even n sample pairs, else samples
  int outputs = 0;  // of the complex transform: all points, or of odd n the bins
  int size = 0;     // of the steps: points, or for a convolution more
  int length = 0;   // of an array of `size` points with its padding
  int n_passes = 0;
  FftPass passes[32];
  Points turn;  // of even n, [points/2+1] of -i exp(-2 pi i k / n)
  // Bluestein's convolution: chirp [points] is exp(-pi i j^2 / points), filter [size] the transform
  // of its conjugate divided by size.
  bool is_convolution = false;
  Points chirp, filter;
};

// The loops for one instruction set. Vectors of floats in memory are 64-byte aligned.
struct Loops {
  const char* instruction_set;
  int width;
  // (tables, frames [width], window [frame_length], points [points][2][width])
  void (*load_int16)(const RunTables&, const std::int16_t* const*, const float*, float*);
  void (*load_float)(const RunTables&, const float* const*, const float*, float*);
  // (tables, points, power [n_bins][width]); overwrites points. Transforms the halved samples: see
  // power_of_pair.
  void (*transform)(const RunTables&, float*, float*);
  // (tables, power, rows [width]); overwrites power
  void (*rows)(const RunTables&, float*, float* const*);
  // (tables, samples [n], bins [n/2+1] re, im, work [4][length])
  void (*own_fft_float)(const FftTables&, const float*, float*, double*);
  void (*own_fft_double)(const FftTables&, const double*, double*, double*);
};

// Radices that a step can have.
constexpr int radices[] = {2, 3, 4, 5, 7, 8, 11, 13};

// The loops that this processor can run, widest first; the last one is the baseline.
struct Available {
  const Loops* loops[3];
  int count;
};
const Available& available();

}  // namespace melflow::lanes
