#include "tests/support/kernel_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stages/device/kernel_front_end.h"
#include "stages/features/mel/mel_presets.h"
#include "stages/features/mel/mel_signal.h"
#include "tests/support/bfloat16.h"

namespace melflow::cuda::testing {

using O = MelOptions;

std::vector<Named> front_ends(int n_fft) {
  std::vector<Named> sets;
  const auto add = [&sets, n_fft](const std::string& name, O o) {
    o.n_fft = n_fft;
    o.top_db.reset();
    o.ref.is_max = false;
    o.normalize = O::Normalize::none;
    o.norm_mean.clear();
    o.norm_std.clear();
    if (check(o).empty()) sets.push_back({name, o});
  };
  for (const MelPreset& preset : mel_presets().first(10)) {  // which others change
    const std::string name(preset.name);
    O o = preset.options;
    add(name, o);
    if (o.win_length) {
      o.win_length = n_fft * 25 / 32;
      add(name + " with a short window", o);
    }
  }
  const auto with = [&](const std::string& name, auto change) {
    O o;
    o.n_mels = 40;
    o.hop = 170;
    change(o);
    add(name, o);
  };
  with("32 bands of 4096 Hz", [](O& o) { o.sample_rate = 4096, o.center = false, o.n_mels = 32; });
  with("odd hop", [](O& o) { o.hop = 171; });
  with("spectrogram", [](O& o) { o.output = O::Output::spectrogram; });
  with("spectrogram of magnitudes", [](O& o) { o.output = O::Output::spectrogram, o.power = 1; });
  with("magnitudes", [](O& o) { o.power = 1; });
  with("power 0.7", [](O& o) { o.power = 0.7; });
  with("power offset", [](O& o) { o.power_offset = 1e-3; });
  with("bands with no bin", [](O& o) { o.n_mels = 200; });
  with("one band", [](O& o) { o.n_mels = 1; });
  with("energy in front", [](O& o) { o.use_energy = true; });
  with("energy behind", [](O& o) { o.use_energy = o.htk_compat = true; });
  with("normalized", [](O& o) { o.normalized = O::Normalized::window; });
  with("tukey window", [](O& o) { o.window = O::Window::tukey, o.tukey_alpha = 0.3; });
  with("given window", [](O& o) {
    o.window = O::Window::values;
    for (int i = 0; i < o.n_fft; ++i) o.window_values.numbers.push_back(0.1 + i * 7 % 16 / 16.0);
  });
  with("given filters, dense", [](O& o) {
    o.filters = {{}, o.n_mels, o.n_fft / 2 + 1, ""};
    for (int i = 0; i < o.filters.rows * o.filters.columns; ++i)
      o.filters.numbers.push_back(0.05 + i * 7 % 16 / 16.0);
  });
  with("filters of another rate", [](O& o) { o.filter_rate = 11025; });
  with("limited bins", [](O& o) { o.power_floor = 1e-4, o.power_ceiling = 10; });
  with("limited magnitudes", [](O& o) { o.power_floor = 1e-4, o.power = 1; });
  with("first sample left out",
       [](O& o) { o.preemphasis = 0.97, o.preemphasis_first = O::PreemphasisFirst::drop; });
  with("partial frames", [](O& o) { o.center = false, o.partial_frames = O::PartialFrames::all; });
  with("partial frames, mean removed", [](O& o) {
    o.center = false, o.remove_dc = true, o.partial_frames = O::PartialFrames::last;
  });
  with("norm 2", [](O& o) { o.mel_norm = O::MelNorm::root; });
  with("bins of torchaudio", [](O& o) { o.bin_hz = O::BinHz::torchaudio, o.sample_rate = 11025; });
  with("linear ramp", [](O& o) { o.pad_mode = O::PadMode::linear_ramp; });
  with("linear ramp, mean removed",
       [](O& o) { o.pad_mode = O::PadMode::linear_ramp, o.remove_dc = true; });
  with("zeros, reflected", [](O& o) { o.pad_zeros = 90; });
  with("zeros, mean removed", [](O& o) { o.pad_zeros = 90, o.remove_dc = true; });
  with("low floor of the energy", [](O& o) { o.use_energy = true, o.energy_eps = 1e-15; });
  with("odd short window", [](O& o) {
    o.align = O::Align::left;
    o.win_length = o.n_fft / 2 + 33;
  });
  return sets;
}

MelOptions of_clicks(int n_fft, int n_mels) {
  O o;
  o.n_fft = n_fft;
  o.n_mels = n_mels;
  o.hop = 1;
  o.window = O::Window::hamming;
  o.center = false;
  return o;
}

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

std::vector<double> exact(const std::vector<std::int16_t>& samples) {
  std::vector<double> out;
  for (const std::int16_t s : samples) out.push_back(s / 32768.0);
  return out;
}

const void* Batch::samples(SampleType type) const {
  if (type == SampleType::int16) return int16.data();
  return float32.data();
}

Batch make_batch(const MelPlan& plan, const std::vector<std::int16_t>& samples) {
  Batch batch;
  const auto n = static_cast<std::int64_t>(samples.size());
  const SignalView<std::int16_t> view{samples.data(), 0, n, n};
  const auto length = static_cast<std::size_t>(plan.frame_length());
  const Conditioner conditioner(plan);
  if (!takes_plain_samples(plan) && !is_conditioned_by_frame(plan)) {
    std::vector<float> work(length);
    for (std::int64_t t = 0; t < plan.frames(n); ++t) {
      const std::size_t at = batch.float32.size();
      batch.float32.resize(at + length);
      conditioner.frame(view, plan.start(t), work.data(), batch.float32.data() + at);
      batch.offsets.push_back(static_cast<std::uint32_t>(at));
    }
    return batch;
  }
  batch.int16 = samples;
  for (std::int64_t t = 0; t < plan.frames(n); ++t) {
    const std::int64_t start = plan.start(t);
    if (start >= 0 && start + plan.frame_length() <= n) {
      batch.offsets.push_back(static_cast<std::uint32_t>(start));
      continue;
    }
    const std::size_t at = batch.int16.size();
    batch.int16.resize(at + length);
    gather(view, start, plan.frame_length(), plan, batch.int16.data() + at);
    batch.offsets.push_back(static_cast<std::uint32_t>(at));
  }
  for (const std::int16_t s : batch.int16) batch.float32.push_back(static_cast<float>(s) / 32768);
  return batch;
}

RowBuffer::RowBuffer(NumberType type, std::size_t values)
    : type_(type),
      count_(values),
      bytes_((values * size_of(type) + 3) / 4, 0xFFFFFFFFU) {}  // NaN in all three types

std::vector<std::uint16_t> RowBuffer::halves() const {
  std::vector<std::uint16_t> out;
  for (std::size_t i = 0; i < count_; ++i)
    out.push_back(static_cast<std::uint16_t>(bytes_[i / 2] >> (i % 2 * 16)));
  return out;
}

std::vector<double> RowBuffer::values() const {
  std::vector<double> out;
  for (std::size_t i = 0; i < count_; ++i) {
    if (type_ == NumberType::float32) {
      out.push_back(static_cast<double>(float_of(bytes_[i])));
      continue;
    }
    const auto half = static_cast<std::uint16_t>(bytes_[i / 2] >> (i % 2 * 16));
    out.push_back(static_cast<double>(
        type_ == NumberType::float16 ? float_of_float16(half) : test::float_of_bfloat16(half)));
  }
  return out;
}

void widen(Errors& worst, const Errors& more) {
  worst = {std::max(worst.of_peak, more.of_peak), std::max(worst.db, more.db)};
}

MelOptions linear(MelOptions o) {
  o.log = O::Log::none;
  o.amin = 1e-10;
  o.log_offset = 0;
  o.ref.value = 1;
  return o;
}

MelOptions in_db(MelOptions o) {
  o.log = O::Log::db;
  o.amin = 1e-30;
  o.log_offset = 0;
  o.ref.value = 1;
  return o;
}

namespace {

// NaN counts as an infinite distance.
double distance(double a, double b) {
  const double d = std::abs(a - b);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

}  // namespace

Errors errors_of(const MelOptions& options, const reference::Rows& expected,
                 const std::vector<double>& values, const std::vector<double>& levels) {
  const int energy = MelPlan(options).energy_column();
  Errors worst;
  for (std::size_t t = 0; t < expected.size(); ++t) {
    const std::size_t columns = expected[t].size();
    const auto is_energy = [energy](std::size_t c) { return static_cast<int>(c) == energy; };
    double peak = 0;
    for (std::size_t c = 0; c < columns; ++c)
      if (!is_energy(c)) peak = std::max(peak, expected[t][c]);
    for (std::size_t c = 0; c < columns; ++c) {
      if (is_energy(c)) continue;
      const double theirs = expected[t][c];
      worst.of_peak = std::max(worst.of_peak, distance(values[t * columns + c], theirs) / peak);
      const double factor = 20 / options.power;
      const double level = factor * std::log10(theirs);
      if (level >= factor * std::log10(peak) - 60)
        worst.db = std::max(worst.db, distance(levels[t * columns + c], level));
    }
  }
  return worst;
}

double level_error(const MelPlan& plan, const reference::Rows& expected,
                   const std::vector<double>& rows) {
  double worst = 0;
  std::size_t i = 0;
  for (const auto& row : expected)
    for (std::size_t c = 0; c < row.size(); ++c, ++i)
      if (static_cast<int>(c) != plan.energy_column())
        worst = std::max(worst, distance(rows[i], row[c]));
  return worst;
}

}  // namespace melflow::cuda::testing
