// Compares per-channel energy normalisation with librosa.pcen, as stored by make_pcen.py, and
// checks that it does not depend on the pieces in which rows come.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "stages/features/mel/pcen_step.h"
#include "tests/support/source_path.h"

namespace melflow::pcen_test {
namespace {

using nlohmann::json;

// Rows stored elsewhere, processed in pieces and copied both ways.
class Pieces final : public UtteranceRows {
 public:
  Pieces(std::vector<float>& values, std::int64_t rows, int columns, std::int64_t piece)
      : UtteranceRows(rows, columns), values_(values), piece_(piece) {}
  [[nodiscard]] std::int64_t piece() const override { return piece_; }
  const float* get(std::int64_t first, std::int64_t count,
                   std::vector<float>& room) const override {
    room.assign(values_.begin() + first * values(), values_.begin() + (first + count) * values());
    return room.data();
  }
  float* place(std::int64_t, std::int64_t count, std::vector<float>& room) override {
    room.assign(static_cast<std::size_t>(count * values()), -1.0F);
    return room.data();
  }
  void put(std::int64_t first, std::int64_t count, const float* given) override {
    std::copy_n(given, count * values(), values_.begin() + first * values());
  }

 private:
  std::vector<float>& values_;
  std::int64_t piece_;
};

std::vector<float> input_of(const json& c) {
  const auto bands = c.at("bands").get<std::size_t>(), frames = c.at("frames").get<std::size_t>();
  std::uint64_t state = 3;
  std::vector<float> out;
  for (std::size_t i = 0; i < frames * bands; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const double draw = static_cast<std::int16_t>(state >> 48);
    out.push_back(static_cast<float>(draw * draw / 0x1p28 * c.at("scale").get<double>()));
  }
  for (const json& row : c.at("silent"))
    std::fill_n(out.begin() + row.get<std::ptrdiff_t>() * static_cast<std::ptrdiff_t>(bands), bands,
                0.0F);
  return out;
}

PcenOptions options_of(const json& c) {
  const json& given = c.at("options");
  PcenOptions o;
  o.gain = given.value("gain", o.gain);
  o.bias = given.value("bias", o.bias);
  o.power = given.value("power", o.power);
  o.eps = given.value("eps", o.eps);
  o.time_constant = given.value("time_constant", o.time_constant);
  o.b = given.value("b", pcen_coefficient(o.time_constant, c.at("sample_rate").get<double>() /
                                                               c.at("hop").get<double>()));
  return o;
}

TEST_CASE("golden pcen: values are librosa's, in pieces of any size bit for bit") {
  std::ifstream file(test::source_path("tests/golden/pcen.json"));
  REQUIRE(file);
  const json golden = json::parse(file);
  CHECK(golden.size() >= 13);
  for (const json& c : golden) {
    CAPTURE(c.at("name").get<std::string>());
    const auto rows = c.at("frames").get<std::int64_t>();
    const auto columns = c.at("bands").get<int>();
    std::vector<float> whole = input_of(c);
    const auto step = pcen_step(options_of(c));
    MemoryRows in_place(whole.data(), rows, columns);
    step->run(in_place, in_place);
    double worst = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const json& row = c.at("output")[i / static_cast<std::size_t>(columns)];
      const double theirs = row[i % static_cast<std::size_t>(columns)].get<double>();
      worst = std::max(worst, std::abs(whole[i] - theirs) / std::max(std::abs(theirs), 1e-30));
    }
    CHECK(worst < 1.3e-7);  // rounding to float, and of the file's nine digits
    for (const std::int64_t piece : {1, 2, 7}) {
      CAPTURE(piece);
      std::vector<float> values = input_of(c);
      Pieces pieces(values, rows, columns, piece);
      step->run(pieces, pieces);
      CHECK(values == whole);
    }
  }
}

TEST_CASE("golden pcen: NaN stays from its frame on, in its column only") {
  PcenOptions o;
  o.b = 0.5;
  std::vector<float> values{1, 1, std::numeric_limits<float>::quiet_NaN(), 1, 1, 1};
  MemoryRows rows(values.data(), 3, 2);
  pcen_step(o)->run(rows, rows);
  CHECK(std::isfinite(values[0]));
  CHECK(std::isnan(values[2]));
  CHECK(std::isnan(values[4]));
  for (const std::size_t i : {1, 3, 5}) CHECK(std::isfinite(values[i]));
}

}  // namespace
}  // namespace melflow::pcen_test
