// Compares the ten presets on real recordings with the libraries that define them, as stored by
// make_real.py. Linear outputs agree within 1e-6 of the frame's peak and 1e-4 of the value, levels
// within 0.0005, plus the library's own distance from its definition (own_error); errors of the
// library up to 1e-4 are not stored.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "stages/features/mel/mel_kernel.h"
#include "stages/features/mel/utterance_steps.h"
#include "tests/support/golden_options.h"
#include "tests/support/recordings.h"
#include "tests/support/source_path.h"

namespace melflow::real_presets_test {
namespace {

using nlohmann::json;

std::vector<float> rows_of(const MelOptions& options, const test::Samples& samples) {
  const MelKernel kernel(std::make_shared<const MelPlan>(options));
  const auto n = static_cast<std::int64_t>(samples.size());
  const std::int64_t frames = kernel.plan().frames(n);
  std::vector<float> rows(static_cast<std::size_t>(frames * kernel.plan().columns()));
  MelKernel::Scratch scratch = kernel.make_scratch();
  kernel.frames(SignalView<std::int16_t>{samples.data(), 0, n, n}, 0, frames, rows.data(), scratch);
  UtteranceSteps::of_mel(options).apply(rows.data(), frames, kernel.plan().columns());
  return rows;
}

TEST_CASE("golden presets: real recordings have the rows that the libraries compute") {
  std::ifstream file(test::source_path("tests/golden/real_presets.json"));
  REQUIRE(file);
  const json golden = json::parse(file);
  std::vector<test::Samples> recordings;
  for (const json& recording : golden["recordings"])
    recordings.push_back(test::read_recording(recording));
  std::set<std::string> presets;
  for (const json& c : golden["cases"]) {
    CAPTURE(c["name"].get<std::string>());
    presets.insert(c["preset"].get<std::string>());
    json settings = c["options"];
    settings["preset"] = c["preset"];
    settings["sample_rate"] = c["sample_rate"];
    const MelOptions options = test::options_of(settings);
    const std::vector<float> rows =
        rows_of(options, recordings.at(c["recording"].get<std::size_t>()));
    const auto bands = c["bands"].get<std::size_t>();
    REQUIRE(rows.size() == c["frames"].get<std::size_t>() * bands);
    double worst = 0;  // as a share of the allowed error
    for (const json& row : c["rows"]) {
      const float* ours = rows.data() + row["frame"].get<std::size_t>() * bands;
      const auto theirs = row["values"].get<std::vector<double>>();
      REQUIRE(theirs.size() == bands);
      const double peak = *std::max_element(theirs.begin(), theirs.end());
      for (std::size_t m = 0; m < bands; ++m) {
        const double own = row.contains("own_error") ? row["own_error"][m].get<double>() : 0.0;
        const double allowed =
            options.log == MelOptions::Log::none ? 1e-6 * peak + 1e-4 * std::abs(theirs[m]) : 5e-4;
        worst =
            std::max(worst, (std::abs(static_cast<double>(ours[m]) - theirs[m]) - own) / allowed);
      }
    }
    CHECK(worst <= 1.0);
  }
  CHECK(presets.size() == 10);
}

}  // namespace
}  // namespace melflow::real_presets_test
