// band_pieces.h - a filterbank cut into pieces of nearly equal length for the lanes of a group.
//
// In:  the bands of a FrontEnd and the number of lanes that work on a frame.
// Out: BandTables: in each of `rounds` rounds every lane sums one piece, a run of neighbouring bins
//      of one band; the piece's sum goes to partial round * lanes + lane, and a band is the sum of
//      its partials. Mel bands grow with frequency: one band a lane would leave most lanes waiting
//      for the widest.
//
// All lanes of a round take the same number of steps, one bin a step; a lane with a shorter piece
// has weights of 0 before or behind it. Where in that slack a piece begins is chosen so that the
// lanes read from different banks. No lane reads outside [0, n_bins). A weight of 0 times an
// infinite power is NaN: where the power itself overflows, a band beside it may be NaN instead of
// finite.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuda/front_end.h"
#include "cuda/host_device.h"

namespace melflow::cuda {

// Plain pointers into BandTables or a copy of it.
struct BandView {
  int rounds = 0;
  int n_bands = 0;
  const std::int32_t* steps = nullptr;        // [rounds]
  const std::int32_t* weights_at = nullptr;   // [rounds], of the round's first weight
  const std::int32_t* first_bin = nullptr;    // [rounds][lanes]
  const std::int32_t* partials_at = nullptr;  // [n_bands + 1], into partials
  const std::int32_t* partials = nullptr;     // of the bands one after another
  const float* weights = nullptr;             // per round [steps][lanes]
};

// The sizes of BandTables, and a view of any copy of its two arrays.
struct BandCounts {
  int lanes = 0;
  int rounds = 0;
  int n_bands = 0;
  int indices = 0;
  int weights = 0;

  MELFLOW_HD int partials() const { return rounds * lanes; }
  MELFLOW_HD BandView view(const std::int32_t* index, const float* weight) const {
    BandView v;
    v.rounds = rounds;
    v.n_bands = n_bands;
    v.steps = index;
    v.weights_at = v.steps + rounds;
    v.first_bin = v.weights_at + rounds;
    v.partials_at = v.first_bin + rounds * lanes;
    v.partials = v.partials_at + n_bands + 1;
    v.weights = weight;
    return v;
  }
};

class BandTables {
 public:
  BandTables() = default;
  // lanes: a power of two. Every round has a multiple of `unit` steps, at most n_bins of them;
  // bands must lie inside [0, n_bins).
  BandTables(std::span<const Band> bands, std::span<const float> weights, int n_bins, int lanes,
             int unit);

  const BandCounts& counts() const { return counts_; }
  // Steps of all rounds: what a frame's bands cost a lane.
  int steps() const;
  std::span<const std::int32_t> indices() const { return indices_; }  // BandView's, in its order
  std::span<const float> weights() const { return weights_; }
  BandView view() const { return counts_.view(indices_.data(), weights_.data()); }

 private:
  BandCounts counts_;
  std::vector<std::int32_t> indices_;
  std::vector<float> weights_;
};

}  // namespace melflow::cuda
