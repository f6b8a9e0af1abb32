// The defaults that the scripts here read from docs/stages.md are the program's own, and values
// derived from options are the same in both.

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "stages/features/mel/mel_options.h"
#include "stages/features/mel_stage_options.h"
#include "tests/support/golden_options.h"
#include "tests/support/python.h"
#include "tests/support/temp_folder.h"

namespace melflow::mel_options_test {
namespace {

using nlohmann::json;

json numbers_of(const MelOptions& options) {
  const MelOptions o = resolve(options);
  return {{"win_length", *o.win_length}, {"hop", *o.hop},   {"gauss_std", *o.gauss_std},
          {"vtln_high", o.vtln_high},    {"fmax", *o.fmax}, {"pad", o.pad ? json(*o.pad) : json()}};
}

TEST_CASE("golden options: scripts have the program's defaults, and derive the same from them") {
  const json cases = json::parse(R"([
    {}, {"n_fft": 401}, {"win_length": 1}, {"win_length": 300}, {"win_length": 300, "align": "left"},
    {"hop": 7, "win_length": 99}, {"center": false}, {"center": false, "pad": 3}, {"pad": 5},
    {"center": false, "snip_edges": true}, {"center": false, "snip_edges": false},
    {"fmax": 0.0}, {"fmax": -100.0}, {"fmax": 3000.0}, {"vtln_high": 0.0}, {"vtln_high": 5000.0},
    {"gauss_std": 9.5}, {"sample_rate": 8000},
    {"sample_rate": 11025}, {"sample_rate": 11025, "bin_hz": "torchaudio", "vtln_high": 0.0},
    {"sample_rate": 11025, "bin_hz": "torchaudio", "fmax": -100.0},
    {"sample_rate": 11025, "bin_hz": "speechbrain"}
  ])");
  json asked = cases;
  for (json& one : asked)
    if (!one.contains("sample_rate")) one["sample_rate"] = 16000;
  const test::TempFolder folder;
  std::ofstream(folder / "cases.json") << asked.dump();
  const std::string said =
      test::python_says("golden/option_table.py", "< '" + (folder / "cases.json") + "'");
  const json theirs = json::parse(said, nullptr, false);
  REQUIRE_MESSAGE(theirs.is_array(), said);

  MelStageOptions stage;
  Schema schema;
  stage.describe(schema);
  std::size_t options = 0;
  for (const Field& f : schema.fields()) {
    CAPTURE(f.name);
    REQUIRE(theirs[0].contains(f.name));
    CHECK(theirs[0][f.name] == json::parse(f.default_text));
    ++options;
  }
  CHECK(options >= 50);
  REQUIRE(theirs.size() == asked.size() + 1);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const json ours = numbers_of(test::options_of(asked[i]));
    CAPTURE(asked[i].dump());
    for (const auto& option : ours.items()) {
      CAPTURE(option.key());
      CHECK(theirs[i + 1][option.key()] == option.value());
    }
  }
}

}  // namespace
}  // namespace melflow::mel_options_test
