// Mel filters against those of librosa, torchaudio, Kaldi, Whisper and SpeechBrain, as
// make_filterbanks.py stored them: equal to 1e-6 of a triangle's height, and where a library is
// itself further from its definition (own_error: it works in single precision), by that much more.

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
    REQUIRE(static_cast<std::size_t>(plan.n_bins()) >= n_bins);
    REQUIRE(static_cast<std::size_t>(plan.n_mels()) == bank.at("bands").size());
    const std::vector<float> dense = test::dense_weights(plan);
    const double allowed = bank.value("own_error", 0.0);
    double worst = 0;
    for (std::size_t m = 0; m < bank.at("bands").size(); ++m) {
      const json& band = bank["bands"][m];
      const auto first = band.at("first").get<std::size_t>();
      const auto& weights = band.at("weights");
      for (std::size_t k = 0; k < static_cast<std::size_t>(plan.n_bins()); ++k) {
        const bool inside = k >= first && k < first + weights.size();
        const double theirs = inside ? weights[k - first].get<double>() : 0.0;
        const auto ours =
            static_cast<double>(dense[m * static_cast<std::size_t>(plan.n_bins()) + k]);
        worst = std::max(worst, std::abs(ours - theirs));
      }
    }
    CHECK(worst <= 1e-6 + allowed);
  }
}

}  // namespace
}  // namespace melflow::filterbanks_test
