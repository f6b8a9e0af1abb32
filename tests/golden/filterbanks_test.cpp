// Compares mel filters with those of librosa, torchaudio, Kaldi, Whisper and SpeechBrain, as stored
// by make_filterbanks.py: equal to 1e-6 of a triangle's height, plus a library's own distance from
// its definition (own_error: it computes in single precision); some bands by their weights, all by
// their weights' sum and first moment.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "stages/features/mel/mel_plan.h"
#include "tests/support/dense_weights.h"
#include "tests/support/golden_options.h"
#include "tests/support/source_path.h"

namespace melflow::filterbanks_test {
namespace {

using nlohmann::json;

TEST_CASE("golden filterbanks: filters are those of the libraries") {
  std::ifstream file(test::source_path("tests/golden/filterbanks.json"));
  REQUIRE(file);
  const json golden = json::parse(file);
  CHECK(golden.at("filterbanks").size() >= 30);
  for (const json& bank : golden.at("filterbanks")) {
    CAPTURE(bank.at("name").get<std::string>());
    const MelPlan plan(test::options_of(bank.at("options")));
    const auto n_bins = bank.at("n_bins").get<std::size_t>();
    const auto ours_bins = static_cast<std::size_t>(plan.n_bins());
    REQUIRE(ours_bins >= n_bins);
    REQUIRE(static_cast<std::size_t>(plan.n_mels()) == bank.at("sums").size());
    const std::vector<float> dense = test::dense_weights(plan);
    const double allowed = 1e-6 + bank.value("own_error", 0.0);
    double worst = 0;
    for (const json& band : bank.at("bands")) {
      const auto first = band.at("first").get<std::size_t>();
      const auto& weights = band.at("weights");
      for (std::size_t k = 0; k < ours_bins; ++k) {
        const bool inside = k >= first && k < first + weights.size();
        const double theirs = inside ? weights[k - first].get<double>() : 0.0;
        const double ours = dense[band.at("band").get<std::size_t>() * ours_bins + k];
        worst = std::max(worst, std::abs(ours - theirs));
      }
    }
    CHECK(worst <= allowed);
    for (std::size_t m = 0; m < bank.at("sums").size(); ++m) {
      double sum = 0, moment = 0, sum_error = 0, moment_error = 0;
      for (std::size_t k = 0; k < ours_bins; ++k) {
        const double weight = dense[m * ours_bins + k];
        const double bin = static_cast<double>(k);
        sum += weight;
        moment += weight * bin;
        sum_error += weight > 0 ? allowed : 0;
        moment_error += weight > 0 ? allowed * bin : 0;
      }
      CAPTURE(m);
      CHECK(std::abs(sum - bank["sums"][m].get<double>()) <= sum_error + 1e-6 * sum);
      CHECK(std::abs(moment - bank["moments"][m].get<double>()) <= moment_error + 1e-6 * moment);
    }
  }
}

}  // namespace
}  // namespace melflow::filterbanks_test
