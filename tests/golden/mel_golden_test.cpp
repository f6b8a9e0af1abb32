// Compares rows of real recordings with librosa's and torchaudio's own, as stored by
// make_golden.py.
//
// A frame agrees if every band within 60 dB of its peak differs by at most 0.001 dB, whatever the
// output's unit, or more by the library's own error (own_error_db).

#include <doctest/doctest.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "stages/features/mel/mel_kernel.h"
#include "stages/features/mel/utterance_steps.h"
#include "tests/support/golden_options.h"
#include "tests/support/recordings.h"
#include "tests/support/source_path.h"

namespace melflow::mel_golden_test {
namespace {

using nlohmann::json;
using test::Samples;

constexpr double tolerance_db = 1e-3;
constexpr double range_db = 60.0;

// Converts a row's value to a level in decibels; -infinity for a linear 0.
double level_db(const MelOptions& options, double value) {
  switch (options.log) {
    case MelOptions::Log::none:
      return 20.0 / options.power * std::log10(value);
    case MelOptions::Log::ln:
      return 20.0 / options.power * value / std::log(10.0);
    case MelOptions::Log::log10:
      return 20.0 / options.power * value;
    case MelOptions::Log::db:
    case MelOptions::Log::piecewise:  // no option set here has it
      break;
  }
  return value;
}

std::vector<float> rows_of(const MelOptions& options, const Samples& samples) {
  const MelKernel kernel(std::make_shared<const MelPlan>(options));
  const auto length = static_cast<std::int64_t>(samples.size());
  const std::int64_t frames = kernel.plan().frames(length);
  std::vector<float> rows(static_cast<std::size_t>(frames * options.n_mels));
  MelKernel::Scratch scratch = kernel.make_scratch();
  kernel.frames(SignalView<std::int16_t>{samples.data(), 0, length, length}, 0, frames, rows.data(),
                scratch);
  UtteranceSteps::of_mel(options).apply(rows.data(), frames, options.n_mels);
  return rows;
}

// Returns the largest difference [dB] of a row's bands within range_db of its peak.
double row_error(const MelOptions& options, const json& row, const float* ours) {
  const double peak = level_db(options, row["peak"].get<double>());
  double worst = 0.0;
  for (std::size_t m = 0; m < row["values"].size(); ++m) {
    const double theirs = level_db(options, row["values"][m].get<double>());
    const double mine = level_db(options, ours[m]);
    if (theirs == mine) continue;  // also if both are -infinity
    const double error = std::abs(theirs - mine);
    if (theirs >= peak - range_db) {
      worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
    } else {
      CHECK(mine < peak - range_db + 1.0);
    }
  }
  return worst;
}

TEST_CASE("mel golden: rows of real recordings agree with librosa and torchaudio") {
  std::ifstream file(test::source_path("tests/golden/mel_golden.json"));
  REQUIRE(file);
  const json golden = json::parse(file);
  std::vector<Samples> recordings;
  for (const json& recording : golden["recordings"]) {
    recordings.push_back(test::read_recording(recording));
  }
  CHECK(golden["sets"].size() >= 14);
  for (const json& set : golden["sets"]) {
    const auto name = set["name"].get<std::string>();
    CAPTURE(name);
    double set_error = 0.0;
    for (const json& result : set["results"]) {
      const auto recording = result["recording"].get<std::size_t>();
      CAPTURE(recording);
      json settings = set["options"];
      settings["sample_rate"] = result["sample_rate"];
      const MelOptions options = test::options_of(settings);
      const std::vector<float> rows = rows_of(options, recordings[recording]);
      const auto n_mels = static_cast<std::size_t>(options.n_mels);
      REQUIRE(rows.size() == result["frames"].get<std::size_t>() * n_mels);
      for (const json& row : result["rows"]) {
        const auto frame = row["frame"].get<std::size_t>();
        CAPTURE(frame);
        REQUIRE(row["values"].size() == n_mels);
        const double error = row_error(options, row, rows.data() + frame * n_mels);
        CHECK(error <= tolerance_db + row.value("own_error_db", 0.0));
        set_error = std::max(set_error, error);
      }
    }
    MESSAGE(name << ": at most " << set_error << " dB");
  }
}

}  // namespace
}  // namespace melflow::mel_golden_test
