// Compares the filterbank in pieces for lanes with its plain form.

#include "cuda/band_pieces.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "cuda/levels.h"
#include "cuda/mel_tables.h"
#include "stages/device/kernel_front_end.h"
#include "stages/features/mel/mel_plan.h"
#include "tests/support/dense_weights.h"

namespace melflow::cuda {
namespace {

MelPlan plan_of(int n_fft, int n_mels, int sample_rate, double fmin = 0.0) {
  MelOptions o;
  o.n_fft = n_fft;
  o.n_mels = n_mels;
  o.sample_rate = sample_rate;
  o.fmin = fmin;
  return MelPlan(o);
}

TEST_CASE("band pieces: every weight is in exactly one piece, and no lane reads outside the bins") {
  for (const auto& warp : std::vector<std::pair<int, int>>{{16, 4}, {32, 4}, {32, 1}}) {
    const int lanes = warp.first, unit = warp.second;
    for (const auto& shape : std::vector<std::pair<int, int>>{{2, 1},
                                                              {6, 2},
                                                              {256, 1},
                                                              {256, 200},
                                                              {400, 80},
                                                              {512, 32},
                                                              {512, 23},
                                                              {1024, 80},
                                                              {2048, 128}}) {
      const int n_fft = shape.first, n_mels = shape.second;
      if (n_fft < 2 * unit) continue;
      CAPTURE(lanes);
      CAPTURE(n_fft);
      CAPTURE(n_mels);
      const MelPlan plan = plan_of(n_fft, n_mels, 16000, 100.0);
      const FrontEnd front_end = kernel_front_end(plan);
      const BandTables tables(front_end.bands, front_end.weights, plan.n_bins(), lanes, unit);
      const BandView view = tables.view();
      const auto n_bins = static_cast<std::size_t>(plan.n_bins());
      std::vector<float> dense(static_cast<std::size_t>(n_mels) * n_bins, 0.0F);
      // Where the bands' partial sums are stored, and how many of them are written.
      const BandCounts& counts = view.counts;
      std::vector<int> band_of(static_cast<std::size_t>(counts.partials()), -1);
      for (int quad = 0; quad < counts.quads; ++quad)
        for (int i = 0; i < 4 * n_mels; ++i)
          band_of.at(static_cast<std::size_t>(quad * 4 * n_mels + i)) = i / 4;
      std::set<std::uint32_t> used;
      const float* weights = view.weights;
      for (int round = 0; round < counts.rounds; ++round) {
        const int steps = view.pieces[round * lanes].steps();
        CHECK(steps % unit == 0);
        CHECK(steps <= most_in_a_row);
        for (int lane = 0; lane < lanes; ++lane) {
          const Piece piece = view.pieces[round * lanes + lane];
          CHECK(piece.steps() == steps);
          CHECK(used.insert(piece.partial()).second);
          const int m = band_of.at(piece.partial());
          REQUIRE(piece.first_bin >= 0);
          REQUIRE(piece.first_bin + steps <= plan.n_bins());
          for (int step = 0; step < steps; ++step) {
            const float weight = weights[(step / unit * lanes + lane) * unit + step % unit];
            if (m < 0)
              CHECK(weight == 0.0F);
            else
              dense[static_cast<std::size_t>(m) * n_bins +
                    static_cast<std::size_t>(piece.first_bin + step)] += weight;
          }
        }
        weights += steps * lanes;
      }
      CHECK(dense == test::dense_weights(plan));
    }
  }
}

TEST_CASE("band pieces: lanes share the work evenly, and seldom read from the same bank") {
  struct Row {
    int n_fft, n_mels, sample_rate;
    double most;        // steps relative to a perfect distribution
    double most_reads;  // relative to steps
  };
  for (const Row& row :
       {Row{512, 32, 4096, 1.6, 1.4}, Row{400, 80, 16000, 1.6, 1.2}, Row{512, 80, 16000, 1.6, 1.2},
        Row{1024, 80, 22050, 1.5, 1}, Row{2048, 128, 22050, 1.4, 1}}) {
    CAPTURE(row.n_fft);
    CAPTURE(row.n_mels);
    const MelPlan plan = plan_of(row.n_fft, row.n_mels, row.sample_rate);
    const FrontEnd front_end = kernel_front_end(plan);
    const BandTables tables(front_end.bands, front_end.weights, plan.n_bins(), 32,
                            FusedTables::steps_of);
    const double share = std::ceil(static_cast<double>(plan.weights().size()) / 32);
    // Counts reads of the power that hit the same bank, over all lanes of a step.
    const BandView view = tables.view();
    int reads = 0;
    for (int round = 0; round < view.counts.rounds; ++round) {
      int of_bank[32] = {};
      std::set<int> seen;
      for (int lane = 0; lane < 32; ++lane) {
        const int k = view.pieces[round * 32 + lane].first_bin;
        if (seen.insert(k).second) ++of_bank[k % 32];
      }
      reads += view.pieces[round * 32].steps() *
               *std::max_element(std::begin(of_bank), std::end(of_bank));
    }
    CHECK(reads <= tables.wavefronts());
    MESSAGE(row.n_fft << ", " << row.n_mels << " bands: " << tables.steps() << " steps in "
                      << tables.counts().rounds << " rounds, a perfect share " << share << ", "
                      << reads << " accesses to shared memory for the power");
    CHECK(tables.steps() <= row.most * share);
    CHECK(reads <= row.most_reads * tables.steps());
  }
}

TEST_CASE("natural log on the host: relative error below 1e-6 over all normal floats") {
  double worst = 0.0;
  const auto compare = [&worst](float x) {
    const double ln = std::log(static_cast<double>(x));
    const double error = std::abs(static_cast<double>(natural_log(x)) - ln);
    if (error > 0.0) worst = std::max(worst, error / std::abs(ln));
  };
  for (std::uint32_t bits = 0x00800000U; bits < 0x7f800000U; bits += 4099U) compare(float_of(bits));
  for (float x = 0.9F; x < 1.1F; x += 1e-6F) compare(x);
  MESSAGE("at most " << worst);
  CHECK(worst < 1e-6);
  CHECK(natural_log(1.0F) == 0.0F);
  CHECK(std::isinf(natural_log(std::numeric_limits<float>::infinity())));
  CHECK(std::isnan(natural_log(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace melflow::cuda
