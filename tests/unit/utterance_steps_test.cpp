// Compares the steps that finish an utterance's rows with the definition in double precision.

#include "stages/features/mel/utterance_steps.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "stages/features/mel/cepstrum.h"
#include "tests/support/reference_mel.h"

namespace melflow::utterance_steps_test {
namespace {

using O = MelOptions;

struct Table {
  std::vector<float> values;
  reference::Rows exact;
  int columns = 0;
};

Table levels(int rows, int columns, unsigned seed) {
  std::mt19937 random(seed);
  Table t;
  t.columns = columns;
  for (int r = 0; r < rows; ++r) {
    t.exact.emplace_back();
    for (int c = 0; c < columns; ++c) {
      t.values.push_back(static_cast<float>(random() % 100000) / 1000.0F - 80.0F -
                         3.0F * static_cast<float>(c));
      t.exact.back().push_back(t.values.back());
    }
  }
  return t;
}

double largest_error(const Table& t) {
  double worst = 0;
  for (std::size_t r = 0; r < t.exact.size(); ++r)
    for (std::size_t c = 0; c < t.exact[r].size(); ++c)
      worst = std::max(worst, std::abs(static_cast<double>(t.values[r * t.exact[r].size() + c]) -
                                       t.exact[r][c]));
  return worst;
}

TEST_CASE("utterance finish: reference = maximum, top_db and normalisation as they are defined") {
  std::vector<MelOptions> table;
  for (const auto log : {O::Log::db, O::Log::log10, O::Log::ln}) {
    for (const auto normalize : {O::Normalize::none, O::Normalize::fixed, O::Normalize::per_feature,
                                 O::Normalize::all_features}) {
      for (int bits = 0; bits < 8; ++bits) {
        O o;
        o.n_mels = 10;
        o.log = log;
        o.power = (bits & 1) != 0 ? 2 : 1;
        o.ref.is_max = (bits & 2) != 0;
        if ((bits & 4) != 0) o.top_db = 70;
        o.normalize = normalize;
        o.norm_variance = bits != 5;
        if (normalize == O::Normalize::fixed) {
          o.norm_mean = {-4};
          if ((bits & 1) != 0) o.norm_std = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
        }
        table.push_back(o);
      }
    }
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    CAPTURE(i);
    const O& o = table[i];
    REQUIRE(check(o).empty());
    for (const int rows : {1, 2, 37}) {
      CAPTURE(rows);
      Table t = levels(rows, 10, 17);
      UtteranceSteps::of_mel(o).apply(t.values.data(), rows, 10);
      reference::finish(o, t.exact);
      CHECK(largest_error(t) < 2e-5);
    }
  }
}

TEST_CASE("utterance finish: what needs the utterance says so, and nothing to do is nothing") {
  O o;
  CHECK(UtteranceSteps::of_mel(o).empty());
  CHECK_FALSE(UtteranceSteps::of_mel(o).needs_utterance());
  o.log = O::Log::db;
  o.normalize = O::Normalize::fixed;
  o.norm_mean = {0};
  CHECK_FALSE(UtteranceSteps::of_mel(o).empty());
  CHECK_FALSE(UtteranceSteps::of_mel(o).needs_utterance());
  o.top_db = 80;
  CHECK(UtteranceSteps::of_mel(o).needs_utterance());
  o.top_db.reset();
  o.ref.is_max = true;
  CHECK(UtteranceSteps::of_mel(o).needs_utterance());
  o.ref.is_max = false;
  o.normalize = O::Normalize::per_feature;
  o.norm_mean.clear();
  CHECK(UtteranceSteps::of_mel(o).needs_utterance());
}

TEST_CASE("utterance finish: a NaN stays where it is, and equal values have no spread") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> rows{nan, -3, -90, -10};
  O o;
  o.log = O::Log::db;
  o.top_db = 20;
  UtteranceSteps::of_mel(o).apply(rows.data(), 2, 2);
  CHECK(std::isnan(rows[0]));
  CHECK(rows[1] == -3.0F);
  CHECK(rows[2] == -23.0F);
  CHECK(rows[3] == -10.0F);
  std::vector<float> equal(8, 5.0F);
  statistics_step({})->run(MemoryRows(equal.data(), 4, 2),
                           *std::make_unique<MemoryRows>(equal.data(), 4, 2));
  for (const float x : equal) CHECK(x == 0.0F);
}

TEST_CASE("utterance finish: torchaudio's 10 log10 of magnitudes, as docs/features.md has it") {
  MelOptions o;
  o.power = 1;
  o.log = MelOptions::Log::log10;
  o.top_db = 160;
  o.normalize = MelOptions::Normalize::fixed;
  o.norm_mean = {0};
  o.norm_std = {0.1};
  const std::vector<float> magnitudes{3.0F, 1e-3F, 2.9e-8F, 1e-9F};
  std::vector<float> rows;
  for (const float x : magnitudes) rows.push_back(std::log10(x));
  UtteranceSteps::of_mel(o).apply(rows.data(), 2, 2);
  for (std::size_t i = 0; i < rows.size(); ++i)
    CHECK(rows[i] ==
          doctest::Approx(std::max(10 * std::log10(magnitudes[i]), 10 * std::log10(3.0F) - 80)));
}

TEST_CASE("utterance finish: an infinite value does not take the others' floor with it") {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> rows{-10, infinity, -90, -20};
  level_step(false, 30.0F)
      ->run(MemoryRows(rows.data(), 4, 1), *std::make_unique<MemoryRows>(rows.data(), 4, 1));
  CHECK(rows == std::vector<float>{-10, infinity, -40, -20});
}

TEST_CASE("cepstrum: the cosine transform, the lifter and where the energy goes") {
  for (const int type : {2, 3}) {
    for (const bool ortho : {true, false}) {
      for (const int count : {1, 13, 23}) {
        CAPTURE(type);
        CAPTURE(ortho);
        CAPTURE(count);
        Table t = levels(5, 23, 3);
        CepstrumOptions o;
        o.n_mfcc = count;
        o.dct_type = type;
        o.norm = ortho ? CepstrumOptions::Norm::ortho : CepstrumOptions::Norm::none;
        Table made;
        made.values.resize(std::size_t{5} * static_cast<std::size_t>(count));
        MemoryRows out(made.values.data(), 5, count);
        cepstrum_step(o, 23, -1)->run(MemoryRows(t.values.data(), 5, 23), out);
        for (const auto& row : t.exact)
          made.exact.push_back(reference::dct(row, count, type, ortho));
        CHECK(largest_error(made) < (ortho ? 5e-5 : 5e-4));
      }
    }
  }
  // Two bands, preceded by an energy; Kaldi has no lifter at 0, and sin(pi/2) at 1 with L = 2.
  std::vector<float> row{7, 1, 3}, out(2);
  CepstrumOptions o;
  o.n_mfcc = 2;
  o.lifter = 2;
  o.lifter_style = CepstrumOptions::LifterStyle::kaldi;
  const auto run = [&](int columns, int energy, const float* from) {
    MemoryRows to(out.data(), 1, 2);
    cepstrum_step(o, columns, energy)->run(MemoryRows(const_cast<float*>(from), 1, columns), to);
  };
  const double first = 4 / std::sqrt(2.0), second = -2 * std::cos(std::acos(-1.0) / 4);
  run(3, 0, row.data());
  CHECK(out[0] == 7.0F);
  CHECK(out[1] == doctest::Approx(2 * second));
  run(2, -1, row.data() + 1);
  CHECK(out[0] == doctest::Approx(first));
  o.htk_compat = true;
  run(2, -1, row.data() + 1);
  CHECK(out[0] == doctest::Approx(2 * second));
  CHECK(out[1] == doctest::Approx(first * std::sqrt(2.0)));
  run(3, 0, row.data());
  CHECK(out[1] == 7.0F);
  o.lifter_style = CepstrumOptions::LifterStyle::librosa;  // sin(pi/2), sin(pi)
  o.htk_compat = false;
  run(2, -1, row.data() + 1);
  CHECK(out[0] == doctest::Approx(2 * first));
  CHECK(out[1] == doctest::Approx(second));
}

}  // namespace
}  // namespace melflow::utterance_steps_test
