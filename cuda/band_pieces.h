// band_pieces.h - a filterbank cut into pieces of nearly equal length for the lanes of a group.
//
// In:  the bands of a FrontEnd and the number of lanes that work on a frame.
// Out: BandTables: in each of `rounds` rounds every lane sums one piece, a run of neighbouring bins
//      of one band, into a partial sum; a band is the sum of its partial sums. Mel bands widen with
//      frequency: with one band per lane, most lanes would wait for the widest.
//
// Every band has room for `quads` times four partial sums, which are loaded four at a time; unused
// ones must be 0.
//
// All lanes of a round take the same number of steps, one bin a step; a lane with a shorter piece
// has weights of 0 before or after it. The start of a piece within that slack, and the lengths of
// the pieces, are chosen so that the lanes read from different banks of shared memory. No lane
// reads outside [0, n_bins). A weight of 0 times an infinite power is NaN: if a power itself
// overflows, a neighbouring band may be NaN instead of finite.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuda/front_end.h"
#include "cuda/host_device.h"

namespace melflow::cuda {

// The most bins added one after another, hence in a piece. Reason: lane_loops_body.h.
constexpr int most_in_a_row = 64;

// The first bin that a lane reads in a round, the number of bins, and the slot of their sum.
struct alignas(8) Piece {
  static constexpr int step_bits = 7;

  std::int32_t first_bin = 0;
  std::uint32_t steps_and_partial = 0;

  MELFLOW_HD int steps() const { return static_cast<int>(steps_and_partial & 127U); }
  MELFLOW_HD std::uint32_t partial() const { return steps_and_partial >> step_bits; }
};

// The sizes of BandTables.
struct BandCounts {
  int lanes = 0;
  int rounds = 0;
  int n_bands = 0;
  int quads = 0;  // groups of four partial sums per band
  int idle = 0;   // lanes of the last round without a piece
  int weights = 0;

  MELFLOW_HD int pieces() const { return rounds * lanes; }
  // Partial sums [quads][n_bands][4], and slots that idle lanes write to; a multiple of four.
  MELFLOW_HD int partials() const { return (quads * n_bands * 4 + idle + 3) / 4 * 4; }
};

// Plain pointers into BandTables or a copy of it.
struct BandView {
  BandCounts counts;
  const Piece* pieces = nullptr;   // [rounds][lanes]; all of a round have equally many steps
  const float* weights = nullptr;  // per round [steps / unit][lanes][unit], aligned to unit floats
};

class BandTables {
 public:
  BandTables() = default;
  // lanes: a power of two, up to 32. unit: weights that a lane loads at once, 1 or 4; the steps of
  // every round are a multiple of it and at most n_bins. There must be at least one band, and all
  // must lie within [0, n_bins).
  BandTables(std::span<const Band> bands, std::span<const float> weights, int n_bins, int lanes,
             int unit);

  const BandCounts& counts() const { return counts_; }
  // Steps of all rounds: the cost of a frame's bands per lane.
  int steps() const { return steps_; }
  // Accesses of shared memory for a frame's reads of bins: `steps` if no two lanes ever read from
  // the same bank.
  int wavefronts() const { return wavefronts_; }
  std::span<const Piece> pieces() const { return pieces_; }
  std::span<const float> weights() const { return weights_; }
  BandView view() const { return {counts_, pieces_.data(), weights_.data()}; }

 private:
  BandCounts counts_;
  int steps_ = 0, wavefronts_ = 0;
  std::vector<Piece> pieces_;
  std::vector<float> weights_;
};

}  // namespace melflow::cuda
