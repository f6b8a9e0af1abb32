// lane_tables.h - the tables of lane_loops.h for one run: twiddle factors, filterbank, levels.
//
// In:  MelPlan.
// Out: RunTables, pointing into memory that this object keeps.

#pragma once

#include <cstdint>
#include <vector>

#include "stages/features/mel/lane_loops.h"
#include "stages/features/mel/mel_plan.h"

namespace melflow {

// Returns the radices of the steps of a transform of `points`, first to last; empty for 1, and for
// a prime factor that no step has.
std::vector<int> radices_of(int points);

class LaneTables {
 public:
  // Larger transforms of several frames at once exceed every cache, so RealFft does them.
  static constexpr int max_points = 1 << 13;

  explicit LaneTables(const MelPlan& plan);
  LaneTables(const LaneTables&) = delete;
  LaneTables& operator=(const LaneTables&) = delete;

  const lanes::RunTables& run() const { return run_; }
  // False if n_fft is odd, too large or has a prime factor above 13; RealFft then transforms
  // frames.
  bool has_transform() const { return run_.points > 0; }

 private:
  void make_transform(int n_fft);
  void make_bands(const MelPlan& plan);

  lanes::RunTables run_;
  std::vector<std::vector<float>> twiddles_;
  std::vector<float> turn_;
  std::vector<std::int32_t> block_at_;
  std::vector<std::int32_t> first_bin_, n_weights_;
};

}  // namespace melflow
