// The filterbank in pieces for lanes against its plain form.

#include "cuda/band_pieces.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
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
      std::set<int> used;
      for (int m = 0; m < n_mels; ++m) {
        for (int i = view.partials_at[m]; i < view.partials_at[m + 1]; ++i) {
          const int partial = view.partials[i];
          CHECK(used.insert(partial).second);
          const int round = partial / lanes, lane = partial % lanes;
          for (int step = 0; step < view.steps[round]; ++step) {
            const int k = view.first_bin[partial] + step;
            REQUIRE(k >= 0);
            REQUIRE(k < plan.n_bins());
            const float weight = view.weights[view.weights_at[round] + step * lanes + lane];
            dense[static_cast<std::size_t>(m) * n_bins + static_cast<std::size_t>(k)] += weight;
          }
        }
      }
      CHECK(dense == test::dense_weights(plan));
      for (int round = 0; round < view.rounds; ++round) CHECK(view.steps[round] % unit == 0);
      for (int partial = 0; partial < tables.counts().partials(); ++partial)
        CHECK(view.first_bin[partial] + view.steps[partial / lanes] <= plan.n_bins());
    }
  }
}

TEST_CASE("band pieces: lanes share the work evenly") {
  struct Row {
    int n_fft, n_mels, sample_rate;
    double most;  // steps over what a perfect share would take
  };
  for (const Row& row :
       {Row{512, 32, 4096, 1.6}, Row{400, 80, 16000, 1.6}, Row{512, 80, 16000, 1.6},
        Row{1024, 80, 22050, 1.4}, Row{2048, 128, 22050, 1.4}}) {
    CAPTURE(row.n_fft);
    CAPTURE(row.n_mels);
    const MelPlan plan = plan_of(row.n_fft, row.n_mels, row.sample_rate);
    const FrontEnd front_end = kernel_front_end(plan);
    const BandTables tables(front_end.bands, front_end.weights, plan.n_bins(), 32,
                            FusedTables::steps_of);
    const double share = std::ceil(static_cast<double>(plan.weights().size()) / 32);
    // Reads of the power that hit the same bank, over all lanes of a step.
    const BandView view = tables.view();
    int reads = 0;
    for (int round = 0; round < view.rounds; ++round) {
      int of_bank[32] = {};
      std::set<int> seen;
      for (int lane = 0; lane < 32; ++lane) {
        const int k = view.first_bin[round * 32 + lane];
        if (seen.insert(k).second) ++of_bank[k % 32];
      }
      reads += view.steps[round] * *std::max_element(std::begin(of_bank), std::end(of_bank));
    }
    MESSAGE(row.n_fft << ", " << row.n_mels << " bands: " << tables.steps() << " steps in "
                      << tables.counts().rounds << " rounds, a perfect share " << share << ", "
                      << reads << " accesses to shared memory for the power");
    CHECK(tables.steps() <= row.most * share);
    CHECK(reads <= 2.5 * tables.steps());
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
