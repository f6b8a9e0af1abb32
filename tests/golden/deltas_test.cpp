// Compares time derivatives with librosa.feature.delta, torchaudio.functional.compute_deltas and
// the definition of Kaldi's add-deltas, as stored by delta_cases.py.

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "stages/features/mel/delta_step.h"
#include "tests/support/source_path.h"

namespace melflow::deltas_test {
namespace {

using nlohmann::json;

TEST_CASE("golden deltas: derivatives are those of the libraries") {
  std::ifstream file(test::source_path("tests/golden/presets.json"));
  REQUIRE(file);
  const json golden = json::parse(file);
  const std::map<std::string, DeltaOptions::Method> methods{
      {"regression", DeltaOptions::Method::regression},
      {"kaldi", DeltaOptions::Method::kaldi},
      {"librosa", DeltaOptions::Method::librosa}};
  CHECK(golden.at("deltas").size() >= 10);
  for (const json& c : golden.at("deltas")) {
    CAPTURE(c.at("name").get<std::string>());
    const DeltaOptions o{c.at("order").get<int>(), c.at("width").get<int>(),
                         methods.at(c.at("method").get<std::string>())};
    const json& rows = c.at("input");
    const auto columns = static_cast<int>(rows[0].size());
    std::vector<float> in;
    for (const json& row : rows)
      for (const json& x : row) in.push_back(x.get<float>());
    const auto count = static_cast<std::int64_t>(rows.size());
    std::vector<float> out(in.size() * static_cast<std::size_t>(o.order + 1));
    MemoryRows made(out.data(), count, columns * (o.order + 1));
    delta_step(o)->run(MemoryRows(in.data(), count, columns), made);
    double worst = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const float* row = out.data() + r * static_cast<std::size_t>(made.values());
      for (int k = 0; k < columns; ++k) {
        CHECK(row[k] == in[r * static_cast<std::size_t>(columns) + static_cast<std::size_t>(k)]);
        const double theirs = c.at("output")[r][static_cast<std::size_t>(k)].get<double>();
        worst = std::max(worst, std::abs(theirs - static_cast<double>(row[o.order * columns + k])));
      }
    }
    CHECK(worst < 1e-5);
  }
}

}  // namespace
}  // namespace melflow::deltas_test
