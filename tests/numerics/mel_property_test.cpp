// For random valid options: an utterance's rows depend neither on the blocks in which its samples
// come, nor on the pieces in which its rows are finished. For random changes that make options
// invalid: a message names the option, and there is no plan.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numbers>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "stages/features/mel/cepstrum.h"
#include "stages/features/mel/delta_step.h"
#include "stages/features/mel/mel_kernel.h"
#include "stages/features/mel/utterance_steps.h"
#include "stages/features/mel_stage_options.h"
#include "tests/support/reference_mel.h"

namespace melflow::mel_property_test {
namespace {

using O = MelOptions;
using Random = std::mt19937_64;

int below(Random& r, int n) { return static_cast<int>(r() % static_cast<unsigned>(n)); }
bool flip(Random& r) { return below(r, 2) == 0; }
template <class E>
E one_of(Random& r) {
  return static_cast<E>(below(r, static_cast<int>(names(E{}).size())));
}
double real(Random& r, double low, double high) {
  return low + (high - low) * static_cast<double>(r() >> 11) * 0x1p-53;
}

// Dense, banded or with empty bands, with either axis first.
void give_filters(Random& r, O& o) {
  const int bins = o.n_fft / 2 + 1, first = below(r, bins), count = below(r, bins);
  o.filters = {{}, o.n_mels, bins, ""};
  if (flip(r)) std::swap(o.filters.rows, o.filters.columns);
  for (int i = 0; i < o.n_mels * bins; ++i) {
    const bool is_inside = i % bins >= first && i % bins < first + count;
    o.filters.numbers.push_back(is_inside || flip(r) ? real(r, -0.2, 1) : 0);
  }
}

// Draws options, not always valid ones.
MelOptions random_options(Random& r) {
  MelOptions o;
  o.sample_rate = 1000 + below(r, 48000);
  if (flip(r)) o.input_scale = 32768;
  if (flip(r)) o.preemphasis = real(r, 0, 1);
  o.preemphasis_of = one_of<O::PreemphasisOf>(r);
  o.preemphasis_first = one_of<O::PreemphasisFirst>(r);
  if (below(r, 4) == 0) o.dither = real(r, 0, 0.1);
  o.dither_seed = static_cast<std::int64_t>(r());
  o.remove_dc = flip(r);
  o.n_fft = 2 + below(r, 80);
  if (flip(r)) o.win_length = 1 + below(r, o.n_fft);
  if (flip(r)) o.hop = 1 + below(r, 100);
  o.align = one_of<O::Align>(r);
  o.window = one_of<O::Window>(r);
  o.periodic = flip(r);
  o.kaiser_beta = real(r, 0, 20);
  o.hamming_alpha = real(r, 0.3, 0.9);
  o.blackman_coeff = real(r, 0.3, 0.5);
  o.tukey_alpha = real(r, 0, 1);
  if (o.window == O::Window::values)
    for (int i = 0; i < o.win_length.value_or(o.n_fft); ++i)
      o.window_values.numbers.push_back(real(r, -1, 1));
  o.center = flip(r);
  if (below(r, 3) == 0) o.pad = below(r, 150);
  if (below(r, 3) == 0) o.snip_edges = flip(r);
  o.pad_mode = one_of<O::PadMode>(r);
  if (below(r, 4) == 0) o.pad_zeros = below(r, 120);
  o.drop_last = flip(r);
  o.drop_exact = !o.drop_last && o.snip_edges != false && below(r, 3) == 0;
  if (!o.drop_exact && o.snip_edges != false) o.partial_frames = one_of<O::PartialFrames>(r);
  o.normalized = one_of<O::Normalized>(r);
  o.power = flip(r) ? 2 : real(r, 0.3, 3);
  if (flip(r)) o.power_offset = real(r, 0, 1e-3);
  if (below(r, 3) == 0) o.power_floor = real(r, 0, 1);
  if (below(r, 3) == 0) o.power_ceiling = real(r, 1, 50);
  o.output = one_of<O::Output>(r);
  o.n_mels = 1 + below(r, 20);
  o.fmin = real(r, 0, 200);
  if (flip(r)) o.fmax = real(r, -200, 20000);
  o.mel_scale = one_of<O::MelScale>(r);
  o.mel_norm = one_of<O::MelNorm>(r);
  o.bin_hz = one_of<O::BinHz>(r);
  if (flip(r)) ++o.sample_rate;
  if (below(r, 4) == 0) o.filter_rate = 1000 + below(r, 48000);
  if (below(r, 4) == 0) give_filters(r, o);
  o.triangles = one_of<O::Triangles>(r);
  o.htk_mode = one_of<O::HtkMode>(r);
  if (flip(r)) o.vtln_warp = real(r, 0.8, 1.2);
  o.use_energy = flip(r);
  o.raw_energy = flip(r);
  o.htk_compat = flip(r);
  o.log = one_of<O::Log>(r);
  if (has_plain_log(o) && !o.use_energy) {
    o.ref.is_max = flip(r);
    if (flip(r)) o.top_db = real(r, 0, 90);
  }
  o.normalize = one_of<O::Normalize>(r);
  if (o.normalize == O::Normalize::fixed) {
    const int n = flip(r) ? 1 : columns(o);
    for (int i = 0; i < n; ++i) o.norm_mean.push_back(real(r, -5, 5));
  }
  o.norm_variance = flip(r);
  o.norm_eps_to = one_of<O::NormEpsTo>(r);
  o.norm_ddof = below(r, 2);
  if (flip(r)) o.db_factor = real(r, 1, 30);
  if (flip(r)) o.energy_eps = real(r, 1e-12, 1e-3);
  if (below(r, 3) == 0) o.precision = O::Precision::float64;
  return o;
}

MelOptions random_valid(Random& r) {
  for (;;) {
    MelOptions o = random_options(r);
    if (check(o).empty()) return o;
  }
}

// Rows stored elsewhere, processed in pieces of a given size and copied both ways.
class CopiedRows final : public UtteranceRows {
 public:
  CopiedRows(std::vector<float>& rows, std::int64_t count, int values, std::int64_t piece)
      : UtteranceRows(count, values), rows_(rows), piece_(piece) {}
  [[nodiscard]] std::int64_t piece() const override { return piece_; }
  const float* get(std::int64_t first, std::int64_t count,
                   std::vector<float>& room) const override {
    room.assign(rows_.begin() + first * values(), rows_.begin() + (first + count) * values());
    return room.data();
  }
  float* place(std::int64_t, std::int64_t count, std::vector<float>& room) override {
    room.assign(static_cast<std::size_t>(count * values()), -1.0F);
    return room.data();
  }
  void put(std::int64_t first, std::int64_t count, const float* from) override {
    std::copy_n(from, count * values(), rows_.begin() + first * values());
  }

 private:
  std::vector<float>& rows_;
  std::int64_t piece_;
};

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

TEST_CASE("mel property: the blocks of an utterance's samples do not show in its rows") {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    Random r(seed);
    const MelKernel kernel(std::make_shared<const MelPlan>(random_valid(r)));
    const MelPlan& plan = kernel.plan();
    auto scratch = kernel.make_scratch();
    std::vector<float> samples(static_cast<std::size_t>(1 + below(r, 700)));
    for (float& s : samples) s = static_cast<float>(real(r, -1, 1));
    const auto n = static_cast<std::int64_t>(samples.size());
    const auto columns = static_cast<std::size_t>(plan.columns());
    const std::uint64_t key = r();

    std::vector<float> whole(static_cast<std::size_t>(plan.frames(n)) * columns);
    kernel.frames(SignalView<float>{samples.data(), 0, n, n, key, 0}, 0, plan.frames(n),
                  whole.data(), scratch);

    std::vector<float> in_blocks(whole.size());
    for (std::int64_t seen = 0; seen < n;) {
      const std::int64_t fresh = seen;
      const std::int64_t begin = std::max<std::int64_t>(0, seen - plan.context());
      seen = std::min<std::int64_t>(n, seen + 1 + below(r, 200));
      const bool is_last = seen == n;
      const std::int64_t from = fresh == 0 ? 0 : plan.frames_ready(fresh);
      const std::int64_t to = is_last ? plan.frames(n) : plan.frames_ready(seen);
      REQUIRE(to >= from);
      // Contains only the samples of a block: the address sanitizer reports reads outside.
      const std::vector<float> held(samples.begin() + begin, samples.begin() + seen);
      kernel.frames(SignalView<float>{held.data(), begin, seen, is_last ? n : -1, key, 0}, from,
                    to - from, in_blocks.data() + static_cast<std::size_t>(from) * columns,
                    scratch);
    }
    CHECK(same_bytes(in_blocks, whole));
  }
}

TEST_CASE(
    "mel property: the pieces of an utterance's rows do not show in what they are finished to") {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Random r(seed);
    const MelOptions options = random_valid(r);
    const int columns = melflow::columns(options);
    UtteranceSteps finish = UtteranceSteps::of_mel(options);
    if (flip(r)) {
      CepstrumOptions c;
      c.n_mfcc = 1 + below(r, columns);
      c.dct_type = 2 + below(r, 2);
      c.htk_compat = flip(r);
      finish.add(cepstrum_step(c, columns, -1));
    }
    if (flip(r)) {
      DeltaOptions d;
      d.order = 1 + below(r, 3);
      d.width = 5 + 2 * below(r, 3);
      d.method = static_cast<DeltaOptions::Method>(below(r, 3));
      finish.add(delta_step(d));
    }
    const std::int64_t count = 12 + below(r, 60);
    std::vector<float> rows(static_cast<std::size_t>(count * columns));
    for (float& x : rows) x = static_cast<float>(real(r, -80, 10));

    std::vector<float> at_once = rows, in_pieces = rows;
    int values = columns;
    for (const auto& step : finish.steps()) {
      const int wider = step->values_out(values);
      std::vector<float> next_once(static_cast<std::size_t>(count * wider));
      std::vector<float> next_pieces(next_once.size());
      const MemoryRows from(at_once.data(), count, values);
      MemoryRows to(next_once.data(), count, wider);
      step->run(from, to);
      const CopiedRows pieces(in_pieces, count, values, 1 + below(r, 20));
      CopiedRows made(next_pieces, count, wider, 1 + below(r, 20));
      step->run(pieces, made);
      // Works in place, too, where the width allows it.
      if (wider == values) {
        MemoryRows both(at_once.data(), count, values);
        step->run(both, both);
        CHECK(same_bytes(at_once, next_once));
      }
      at_once = std::move(next_once);
      in_pieces = std::move(next_pieces);
      values = wider;
    }
    CHECK(same_bytes(in_pieces, at_once));
  }
}

// Whether a value may be on the other side of a step of the piecewise logarithm.
bool is_at_a_step(double value, double tolerance) {
  const double e = std::numbers::e;
  return std::abs(value - e) <= tolerance || std::abs(value - std::exp(e)) <= tolerance;
}

TEST_CASE("mel property: rows are those of the definition in double precision") {
  double worst_float = 0, worst_double = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    Random r(seed);
    O o = random_valid(r);
    // Levels of bands that are nearly 0 have no bound; those of the piecewise logarithm do.
    if (has_plain_log(o)) o.log = O::Log::none, o.log_offset = 0, o.ref = {}, o.top_db.reset();
    o.power = std::max(o.power, 1.0);  // a root steeper at 0 makes any error large
    o.dither = 0;
    o.normalize = O::Normalize::none;
    o.norm_mean.clear();
    o.norm_std.clear();
    std::vector<float> samples(static_cast<std::size_t>(1 + below(r, 300)));
    for (float& s : samples) s = static_cast<float>(real(r, -1, 1));
    const auto n = static_cast<std::int64_t>(samples.size());
    O linear = o;
    linear.log = O::Log::none;
    const std::vector<double> exact(samples.begin(), samples.end());
    const reference::Rows expected = reference::mel(o, exact),
                          values = reference::mel(linear, exact);
    // What errors are relative to: without a ceiling, and of bands without cancelling weights.
    double peak = 1e-3;
    O loud = linear;
    loud.power_ceiling.reset();
    for (double& w : loud.filters.numbers) w = std::abs(w);
    for (const auto& row : reference::mel(loud, exact))
      for (const double x : row) peak = std::max(peak, x);
    const int energy = MelPlan(o).energy_column();
    for (const bool is_double : {false, true}) {
      o.precision = is_double ? O::Precision::float64 : O::Precision::float32;
      const MelKernel kernel(std::make_shared<const MelPlan>(o));
      auto scratch = kernel.make_scratch();
      const MelPlan& plan = kernel.plan();
      const auto columns = static_cast<std::size_t>(plan.columns());
      REQUIRE(plan.frames(n) == static_cast<std::int64_t>(expected.size()));
      std::vector<float> rows(expected.size() * columns);
      kernel.frames(SignalView<float>{samples.data(), 0, n, n}, 0, plan.frames(n), rows.data(),
                    scratch);
      double& worst = is_double ? worst_double : worst_float;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::size_t t = i / columns, c = i % columns;
        if (static_cast<int>(c) == energy) continue;
        const double value = values[t][c];
        if (o.log == O::Log::piecewise && is_at_a_step(value, 1e-5 * peak)) continue;
        const double error = std::abs(static_cast<double>(rows[i]) - expected[t][c]);
        worst = std::max(worst, error / (peak + std::abs(expected[t][c])));
      }
    }
  }
  MESSAGE("of the recording's largest value, float: " << worst_float
                                                      << ", double: " << worst_double);
  CHECK(worst_float < 2e-6);
  CHECK(worst_double < 6e-8);  // the rounding of the row to float
}

struct Spoiler {
  const char* option;
  std::function<void(MelOptions&, Random&)> spoil;
};

TEST_CASE("mel property: one wrong option among random ones is named, with its value") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Spoiler> spoilers{
      {"sample_rate", [](O& o, Random& r) { o.sample_rate = -below(r, 1000); }},
      {"input_scale", [](O& o, Random&) { o.input_scale = 0; }},
      {"input_scale", [nan](O& o, Random&) { o.input_scale = nan; }},
      {"dither", [](O& o, Random&) { o.dither = -0.5; }},
      {"preemphasis", [](O& o, Random&) { o.preemphasis = 1.5; }},
      {"n_fft", [](O& o, Random& r) { o.n_fft = 1 - below(r, 1000); }},
      {"win_length", [](O& o, Random& r) { o.win_length = o.n_fft + 1 + below(r, 9); }},
      {"hop", [](O& o, Random& r) { o.hop = -below(r, 9); }},
      {"kaiser_beta", [](O& o, Random&) { o.kaiser_beta = -1; }},
      {"gauss_std", [](O& o, Random&) { o.gauss_std = 0; }},
      {"pad", [](O& o, Random&) { o.snip_edges.reset(), o.pad = -1; }},
      {"snip_edges", [](O& o, Random&) { o.center = true, o.pad.reset(), o.snip_edges = true; }},
      {"power", [](O& o, Random&) { o.power = -2; }},
      {"power", [nan](O& o, Random&) { o.power = nan; }},
      {"power_offset", [](O& o, Random&) { o.power_offset = -1e-9; }},
      {"power_floor", [](O& o, Random&) { o.power_floor = -1; }},
      {"power_ceiling", [](O& o, Random&) { o.power_floor = 2, o.power_ceiling = 1; }},
      {"power_ceiling", [](O& o, Random&) { o.power_ceiling = 0; }},
      {"filters",
       [](O& o, Random& r) {
         give_filters(r, o), o.filters.numbers.front() = 1, ++o.n_fft, ++o.n_fft;
       }},
      {"filters",
       [](O& o, Random& r) { give_filters(r, o), o.filters.numbers.front() = 1, ++o.n_mels; }},
      {"filter_rate", [](O& o, Random& r) { o.filter_rate = -below(r, 50); }},
      {"partial_frames",
       [](O& o, Random&) {
         o.snip_edges.reset(), o.drop_exact = true, o.partial_frames = O::PartialFrames::all;
       }},
      {"partial_frames",
       [](O& o, Random&) {
         o.center = false, o.pad.reset(), o.snip_edges = false;
         o.partial_frames = O::PartialFrames::last;
       }},
      {"n_mels", [](O& o, Random& r) { o.n_mels = -below(r, 9); }},
      {"fmin", [](O& o, Random&) { o.fmin = -5; }},
      {"fmax", [](O& o, Random&) { o.filters = {}, o.vtln_warp = 1, o.fmax = filter_rate(o); }},
      {"vtln_warp", [](O& o, Random&) { o.vtln_warp = 0; }},
      {"energy_floor", [](O& o, Random&) { o.energy_floor = -1; }},
      {"amin", [](O& o, Random&) { o.log = O::Log::ln, o.amin = 0; }},
      {"log_offset", [](O& o, Random&) { o.log = O::Log::ln, o.log_offset = -1; }},
      {"norm_mean",
       [](O& o, Random&) {
         o.normalize = O::Normalize::fixed;
         o.norm_mean.assign(static_cast<std::size_t>(columns(o)) + 2, 0.0);
       }},
      {"norm_mean", [](O& o, Random&) { o.normalize = O::Normalize::none, o.norm_mean = {1}; }},
      {"norm_std",
       [](O& o, Random&) {
         o.normalize = O::Normalize::fixed, o.norm_mean = {1}, o.norm_std = {0.0};
       }},
      {"norm_eps", [](O& o, Random&) { o.norm_eps = -1; }},
  };
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    Random r(seed);
    const Spoiler& spoiler = spoilers[seed % spoilers.size()];
    CAPTURE(spoiler.option);
    MelOptions o = random_valid(r);
    spoiler.spoil(o, r);
    const auto problems = check(o);
    const bool named = std::any_of(problems.begin(), problems.end(), [&](const auto& p) {
      return p.option == spoiler.option &&
             p.message.starts_with(std::string(spoiler.option) + " is ") &&
             p.message.find(" but must be ") != std::string::npos;
    });
    CHECK(named);
    CHECK_THROWS_AS(MelPlan{o}, std::invalid_argument);
  }
}

TEST_CASE("mel property: equal features have one canonical form, which is valid again") {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    Random r(seed);
    const MelOptions o = random_valid(r);
    const std::string canonical = to_json(MelStageOptions::canonical(o));
    CHECK(check(resolve(o)).empty());
    CHECK(to_json(MelStageOptions::canonical(resolve(o))) == canonical);
  }
}

}  // namespace
}  // namespace melflow::mel_property_test
