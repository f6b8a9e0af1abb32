// mel_tables.h - the tables that kernels need, as host arrays made from a FrontEnd.
//
// In:  FrontEnd, made from the same plan that the processor uses, so that the two cannot diverge.
// Out: windows, filterbank and, for the fused kernel, window and twiddles in the order in
//      which the lanes of a warp use them.
//
// The work format of all kernels: one flat buffer of samples, all int16 or all float, and for each
// frame the position of its first sample there. A frame is frame_length samples from there on, all
// within the buffer. The host has padded them, and conditioned them unless FrontEnd::condition is
// set; in that case a kernel does so first. Rows are [n_frames, columns]; a column for the energy
// is left unchanged, since the host fills it.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuda/band_pieces.h"
#include "cuda/complex.h"
#include "cuda/front_end.h"
#include "cuda/number_types.h"

namespace melflow::cuda {

// Returns the window [frame_length] times that sample type's scale and `factor`.
std::vector<float> scaled_window(const FrontEnd& front_end, SampleType samples, float factor);

// For the kernels around a transform by cuFFT: any n_fft.
struct AnySizeTables {
  static constexpr int lanes = 32;

  explicit AnySizeTables(const FrontEnd& front_end);

  Settings settings;
  std::vector<float> window_int16, window_float;  // [frame_length]
  BandTables bands;                               // empty for a spectrogram
};

// Plain pointers into FusedTables or a copy of it. [k][lanes]: value k of every lane side by side.
struct FusedView {
  const Complex* window = nullptr;  // [first_per_lane * r1][lanes], of sample pairs
  const Complex* first = nullptr;   // [first_per_lane * (r1 - 1)][lanes]
  const Complex* middle = nullptr;  // [middle_twiddles * (r2 - 1)][lanes]
  const Complex* turn = nullptr;    // [tasks_per_lane * r3][lanes], -i exp(-2 pi i bin / n_fft)
};

// For the fused kernel of one of fused_sizes.
struct FusedTables {
  static constexpr int steps_of = 4;  // bins of a band that a lane takes between two branches

  // Throws std::invalid_argument if n_fft is not one of these sizes.
  FusedTables(const FrontEnd& front_end, NumberType operands);

  Settings settings;
  int lanes = 0;      // per frame
  int exchanged = 0;  // points that a frame has in shared memory between passes
  std::vector<Complex> window_int16, window_float, first, middle, turn;
  BandTables bands;

  FusedView view(SampleType samples) const;
  // Shared memory of a frame: exchanged points, later replaced by the power; from partials_at on,
  // the partial sums of the bands. [bytes]
  std::size_t partials_at(NumberType operands) const;
  std::size_t bytes_of_frame(NumberType operands) const;
};

// Shared memory that a block can have on every device from compute capability 8.0 on.
constexpr std::size_t most_block_bytes = 99U << 10;

// Warps of a block share the tables of the bands. Few warps, so that registers and shared memory
// are allocated in small parts.
constexpr int fused_warps = 4;
// Shared memory of a block for the bands' tables, rounded up to 16 bytes. [bytes]
MELFLOW_HD std::uint32_t table_bytes(const BandCounts& bands) {
  return (4U * static_cast<std::uint32_t>(2 * bands.pieces() + bands.weights) + 15U) / 16U * 16U;
}
// Shared memory of a block of the fused kernel: the tables of the bands, then its frames. [bytes]
std::size_t fused_block_bytes(const FusedTables& tables, NumberType operands);
// Whether there is a fused kernel for this n_fft, and its bands fit into a block.
bool has_fused_kernel(const FrontEnd& front_end);
// Whether n_fft is one of fused_sizes.
bool is_fused_size(int n_fft);

}  // namespace melflow::cuda
