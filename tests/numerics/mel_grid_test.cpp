// Compares several hundred parameter sets with the definition in double precision
// (reference_mel.h). precision: float: values within 1e-6 of the frame's peak, and levels within
// 1.3e-3 dB in bands within 60 dB of it, with the loops of every instruction set. precision:
// double: apart from the rounding of the row to float, values within 1e-12 of the peak, and levels
// within 1e-7 dB in bands within 100 dB of it.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stages/features/mel/mel_kernel.h"
#include "stages/features/mel/mel_presets.h"
#include "stages/features/mel/utterance_steps.h"
#include "tests/support/reference_mel.h"
#include "tests/support/sanitized.h"

namespace melflow::mel_grid_test {
namespace {

using O = MelOptions;

// Two gliding tones with an offset, on noise 60 dB below full scale: strong and weak bands.
std::vector<std::int16_t> recording(std::int64_t n) {
  std::vector<std::int16_t> samples;
  std::uint64_t state = 42;
  for (std::int64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const double x = static_cast<double>(i) / static_cast<double>(n);
    const double noise = static_cast<double>(state >> 40) / 16777216.0 - 0.5;
    const double value =
        9000 * std::sin(200 * x + 250 * x * x) + 3000 * std::sin(900 * x) + 400 + 60 * noise;
    samples.push_back(static_cast<std::int16_t>(std::lround(value)));
  }
  return samples;
}

struct Named {
  std::string name;
  MelOptions options;
};

template <class E>
std::vector<E> all_of() {
  std::vector<E> out;
  for (std::size_t i = 0; i < names(E{}).size(); ++i) out.push_back(static_cast<E>(i));
  return out;
}

// Every front end with each relevant option changed, one by one and in pairs.
std::vector<Named> grid() {
  std::vector<Named> sets;
  const auto add = [&sets](const std::string& name, const MelOptions& options) {
    MelOptions o = options;
    o.top_db.reset();
    o.ref.is_max = false;
    o.normalize = O::Normalize::none;
    o.norm_mean.clear();
    o.norm_std.clear();
    if (check(o).empty()) sets.push_back({name, o});
  };
  for (const MelPreset& preset : mel_presets().first(10)) {  // which others change
    const std::string name(preset.name);
    const MelOptions& base = preset.options;
    add(name, base);
    const auto with = [&](const std::string& what, auto change) {
      MelOptions o = base;
      change(o);
      add(name + ", " + what, o);
    };
    for (const int rate : {8000, 22050, 48000})
      with(std::to_string(rate) + " Hz", [&](O& o) { o.sample_rate = rate; });
    for (const auto window : all_of<O::Window>()) {
      for (const bool periodic : {true, false})
        with(std::string(name_of(window)) + (periodic ? "" : ", symmetric"), [&](O& o) {
          o.window = window;
          if (window == O::Window::values)
            for (int i = 0; i < o.win_length.value_or(o.n_fft); ++i)
              o.window_values.numbers.push_back(0.1 + i * 7 % 16 / 16.0);
          o.periodic = periodic;
        });
    }
    for (const auto mode : all_of<O::PadMode>())
      with(std::string(name_of(mode)), [&](O& o) { o.pad_mode = mode; });
    with("other shapes", [](O& o) { o.window = O::Window::hamming, o.hamming_alpha = 0.6; });
    with("other shapes", [](O& o) { o.window = O::Window::blackman, o.blackman_coeff = 0.36; });
    with("other shapes", [](O& o) { o.window = O::Window::tukey, o.tukey_alpha = 0.2; });
    with("zeros at the ends",
         [](O& o) { o.pad_zeros = 90, o.snip_edges.reset(), o.pad.reset(), o.center = true; });
    for (const auto norm : all_of<O::MelNorm>()) with("norm", [&](O& o) { o.mel_norm = norm; });
    for (const auto bins : all_of<O::BinHz>())
      with("bins", [&](O& o) { o.bin_hz = bins, o.sample_rate |= 1; });
    with("short window in the middle", [](O& o) {
      o.align = O::Align::center;
      o.win_length = o.n_fft * 5 / 8;
    });
    with("short window at the left", [](O& o) {
      o.align = O::Align::left;
      o.win_length = o.n_fft * 5 / 8;
    });
    with("not centred", [](O& o) { o.center = false, o.pad.reset(), o.snip_edges.reset(); });
    with("without snip_edges", [](O& o) { o.center = false, o.pad.reset(), o.snip_edges = false; });
    with("padded by 100", [](O& o) { o.center = false, o.snip_edges.reset(), o.pad = 100; });
    with("amplitude", [](O& o) { o.power = 1; });
    with("power 0.7", [](O& o) { o.power = 0.7; });
    with("power offset", [](O& o) { o.power_offset = 1e-3 * o.input_scale * o.input_scale; });
    with("normalized by the window", [](O& o) { o.normalized = O::Normalized::window; });
    with("spectrogram", [](O& o) { o.output = O::Output::spectrogram; });
    for (const auto scale : all_of<O::MelScale>()) {
      for (const auto triangles : all_of<O::Triangles>())
        with(std::string(name_of(scale)) + ", triangles " + std::string(name_of(triangles)),
             [&](O& o) {
               o.mel_scale = scale;
               o.triangles = triangles;
               o.mel_norm = triangles == O::Triangles::mel ? O::MelNorm::slaney : O::MelNorm::none;
             });
    }
    with("from 60 Hz to 300 Hz below Nyquist", [](O& o) { o.fmin = 60, o.fmax = -300; });
    for (const auto mode : all_of<O::HtkMode>())
      with("htk_mode", [&](O& o) { o.htk_mode = mode, o.fmin = 64, o.fmax = -300; });
    for (const double factor : {0.88, 1.12})
      with("warp",
           [&](O& o) { o.fmin = 20, o.fmax = -100, o.vtln_warp = factor, o.vtln_high = -600; });
    for (const auto of : {O::PreemphasisOf::signal, O::PreemphasisOf::frame})
      with("pre-emphasis", [&](O& o) { o.preemphasis = 0.9, o.preemphasis_of = of; });
    for (const auto first : all_of<O::PreemphasisFirst>())
      with(std::string(name_of(first)) + " first sample", [&](O& o) {
        o.preemphasis = 0.9, o.preemphasis_of = O::PreemphasisOf::signal;
        o.preemphasis_first = first;
      });
    for (const auto partial : all_of<O::PartialFrames>())
      with(std::string(name_of(partial)) + " partial frames", [&](O& o) {
        o.center = false, o.pad.reset(), o.snip_edges.reset(), o.partial_frames = partial;
      });
    with("bins with limits", [](O& o) {
      o.power_floor = 1e-4 * o.input_scale * o.input_scale;
      o.power_ceiling = 10 * o.input_scale * o.input_scale;
    });
    with("filters of 16 kHz", [](O& o) { o.sample_rate = 24000, o.filter_rate = 16000; });
    with("given filters", [](O& o) {
      o.filters = {{}, o.n_fft / 2 + 1, o.n_mels, ""};
      for (int i = 0; i < o.filters.rows * o.filters.columns; ++i)
        o.filters.numbers.push_back(0.1 + i * 7 % 16 / 16.0);
    });
    with("mean removed", [](O& o) { o.remove_dc = true; });
    for (const bool raw : {true, false}) {
      with("energy", [&](O& o) { o.use_energy = true, o.raw_energy = raw; });
      with("energy last", [&](O& o) {
        o.use_energy = o.htk_compat = true, o.raw_energy = raw, o.remove_dc = true;
        o.preemphasis = 0.5, o.preemphasis_of = O::PreemphasisOf::frame;
      });
    }
    with("odd n_fft", [](O& o) { o.n_fft |= 1, o.pad.reset(); });
  }
  return sets;
}

struct Errors {
  double of_peak = 0;  // largest error of a value, relative to its frame's peak
  double db = 0;       // largest error of a level close enough to the peak [dB]
  void take(const Errors& other) {
    of_peak = std::max(of_peak, other.of_peak);
    db = std::max(db, other.db);
  }
};

// Returns an error in excess of half a float's step.
double beyond_rounding(double ours, double theirs) {
  return std::max(0.0, std::abs(ours - theirs) - std::abs(theirs) * 0x1.000001p-24);
}

// `linear`: options of the set without a log; `expected`: rows of the definition.
Errors errors_of(const MelOptions& linear, const reference::Rows& expected,
                 const std::vector<std::int16_t>& samples, std::string_view set) {
  MelOptions levels = linear;
  levels.log = O::Log::db;
  levels.amin = 1e-30;
  levels.log_offset = 0;
  levels.ref.value = 1;
  const bool is_double = linear.precision == O::Precision::float64;
  const double range = is_double ? 100 : 60;
  const auto columns = static_cast<std::size_t>(melflow::columns(linear));
  const auto rows_of = [&](const MelOptions& o) {
    const MelKernel kernel(std::make_shared<const MelPlan>(o), set);
    const auto n = static_cast<std::int64_t>(samples.size());
    const std::int64_t frames = kernel.plan().frames(n);
    REQUIRE(frames == static_cast<std::int64_t>(expected.size()));
    std::vector<float> rows(static_cast<std::size_t>(frames) * columns);
    auto scratch = kernel.make_scratch();
    kernel.frames(SignalView<std::int16_t>{samples.data(), 0, n, n}, 0, frames, rows.data(),
                  scratch);
    return rows;
  };
  const std::vector<float> values = rows_of(linear), in_db = rows_of(levels);
  const int energy = MelPlan(linear).energy_column();
  Errors worst;
  for (std::size_t t = 0; t < expected.size(); ++t) {
    double peak = 0;
    for (std::size_t c = 0; c < columns; ++c)
      if (static_cast<int>(c) != energy) peak = std::max(peak, expected[t][c]);
    for (std::size_t c = 0; c < columns; ++c) {
      const double theirs = expected[t][c];
      const auto ours = static_cast<double>(values[t * columns + c]);
      const auto error = [&](double got, double right) {
        return is_double ? beyond_rounding(got, right) : std::abs(got - right);
      };
      if (static_cast<int>(c) == energy) {
        CHECK(error(ours, theirs) < (is_double ? 1e-12 : 2e-5));  // both take a logarithm
        continue;
      }
      worst.of_peak = std::max(worst.of_peak, error(ours, theirs) / peak);
      const double factor = 20 / linear.power;
      const bool is_floored = linear.htk_mode == O::HtkMode::htk;  // with a log after the bands
      const double level = factor * std::log10(is_floored ? std::max(theirs, 1.0) : theirs);
      if (level < factor * std::log10(peak) - range) continue;
      worst.db = std::max(worst.db, error(in_db[t * columns + c], level));
    }
  }
  return worst;
}

TEST_CASE("mel grid: several hundred parameter sets agree with the definition") {
  const std::vector<Named> sets = grid();
  CHECK(sets.size() >= 200);
  // Sanitizers look for errors of memory, which need no pairs of options.
  const std::size_t step = test::kSanitized ? 5 : 1;
  const std::vector<std::int16_t> samples = recording(3000);
  std::vector<double> exact;
  for (const std::int16_t s : samples) exact.push_back(s / 32768.0);
  Errors worst, worst_double;
  for (std::size_t i = 0; i < sets.size(); i += step) {
    const Named& set = sets[i];
    CAPTURE(set.name);
    MelOptions linear = set.options;
    linear.log = O::Log::none;
    linear.amin = 1e-10;
    linear.log_offset = 0;
    const reference::Rows expected = reference::mel(linear, exact);
    for (const std::string_view instructions : MelKernel::instruction_sets()) {
      const Errors e = errors_of(linear, expected, samples, instructions);
      CHECK(e.of_peak <= 1e-6);
      CHECK(e.db <= 1.3e-3);
      worst.take(e);
    }
    linear.precision = O::Precision::float64;
    const Errors d = errors_of(linear, expected, samples, MelKernel::instruction_set());
    CHECK(d.of_peak <= 1e-12);
    CHECK(d.db <= 1e-7);
    worst_double.take(d);
  }
  MESSAGE(sets.size() << " sets: at most " << worst.of_peak << " of the peak, " << worst.db
                      << " dB; double " << worst_double.of_peak << ", " << worst_double.db
                      << " dB");
}

// All bins of a click are equal, and all roundings of their sum go the same way.
TEST_CASE("mel grid: a click at any place of a frame, in bands of many bins") {
  struct Shape {
    int n_fft, n_mels, hop;
  };
  for (const Shape& shape :
       {Shape{512, 80, 1}, Shape{512, 23, 1}, Shape{1024, 40, 1}, Shape{2048, 128, 1},
        Shape{2048, 40, 1}, Shape{2048, 13, 1}, Shape{4096, 13, 1}, Shape{4096, 1, 1},
        Shape{1103, 2, 1}, Shape{65536, 13, 1021}}) {
    Errors worst;
    for (const auto window : {O::Window::boxcar, O::Window::hamming}) {
      for (const std::string_view instructions : MelKernel::instruction_sets()) {
        O o;
        o.n_fft = shape.n_fft;
        o.n_mels = shape.n_mels;
        o.hop = shape.hop;
        o.window = window;
        o.mel_norm = window == O::Window::boxcar ? O::MelNorm::none : O::MelNorm::slaney;
        o.center = false;
        worst.take(errors_of(o, reference::click_rows(o), reference::click(o.n_fft), instructions));
      }
    }
    CAPTURE(shape.n_fft);
    CAPTURE(shape.n_mels);
    CHECK(worst.of_peak <= 1e-6);
    MESSAGE(shape.n_fft << ", " << shape.n_mels << " bands: at most " << worst.of_peak
                        << " of the peak, " << worst.db << " dB");
  }
}

}  // namespace
}  // namespace melflow::mel_grid_test
