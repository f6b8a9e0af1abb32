#include "mel/mel_options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace melflow {
namespace {

constexpr int max_n_fft = 1 << 20;   // a frame of a minute at 16 kHz; keeps every index in int
constexpr int max_n_mels = 1 << 16;  // far beyond any use; bounds the tables
constexpr int max_hop = 1 << 24;
constexpr double huge = std::numeric_limits<float>::max();
constexpr double smallest = std::numeric_limits<float>::min();

// False for NaN.
bool within(double value, double low, double high) { return value >= low && value <= high; }

struct Complaints {
  std::vector<MelOptionProblem> all;

  template <class T, class... Text>
  void require(bool ok, const char* option, const T& value, const Text&... allowed) {
    if (ok) return;
    std::ostringstream text;
    text << option << " is " << value << ", must be ";
    (text << ... << allowed);
    all.push_back({option, text.str()});
  }
};

const char* text(bool value) { return value ? "true" : "false"; }

void check_conditioning(const MelOptions& o, Complaints& c) {
  c.require(o.sample_rate >= 1, "sample_rate", o.sample_rate, "at least 1 Hz");
  c.require(within(o.input_scale, 1e-6, 1e9), "input_scale", o.input_scale, "from 1e-6 to 1e9");
  c.require(within(o.dither, 0.0, 1e9), "dither", o.dither, "from 0 to 1e9");
  c.require(within(o.preemphasis, 0.0, 1.0), "preemphasis", o.preemphasis, "from 0 to 1");
}

void check_window(const MelOptions& o, Complaints& c) {
  using Window = MelOptions::Window;
  c.require(o.n_fft >= 2 && o.n_fft <= max_n_fft, "n_fft", o.n_fft, "from 2 to ", max_n_fft,
            " samples");
  if (o.win_length) {
    c.require(*o.win_length >= 1 && *o.win_length <= o.n_fft, "win_length", *o.win_length,
              "from 1 to n_fft (", o.n_fft, ") samples");
  }
  // Both values of the two-sample window are its zero ends.
  const bool zero_ends = !o.periodic && (o.window == Window::hann || o.window == Window::blackman ||
                                         o.window == Window::povey);
  c.require(
      !zero_ends || o.win_length.value_or(o.n_fft) != 2, "win_length", 2,
      "other than 2 for a symmetric hann, povey or blackman window, which would be all zeros");
  c.require(within(o.kaiser_beta, 0.0, 500.0), "kaiser_beta", o.kaiser_beta, "from 0 to 500");
  if (o.gauss_std) {
    c.require(within(*o.gauss_std, 1e-3, 1e9), "gauss_std", *o.gauss_std,
              "from 0.001 to 1e9 samples");
  }
}

void check_framing(const MelOptions& o, Complaints& c) {
  if (o.hop) {
    c.require(*o.hop >= 1 && *o.hop <= max_hop, "hop", *o.hop, "from 1 to ", max_hop, " samples");
  }
  if (o.pad) {
    c.require(*o.pad >= 0 && *o.pad <= max_n_fft, "pad", *o.pad, "from 0 to ", max_n_fft,
              " samples");
  }
  if (o.snip_edges) {
    c.require(!o.center, "snip_edges", text(*o.snip_edges),
              "unset when center is true: both place the frames");
    c.require(o.pad.value_or(0) == 0, "pad", o.pad.value_or(0), "unset when snip_edges is set");
  }
  c.require(within(o.power, 0.0, 16.0) && o.power > 0.0, "power", o.power,
            "above 0 and at most 16");
  c.require(within(o.power_offset, 0.0, huge), "power_offset", o.power_offset, "from 0 to ", huge);
}

void check_bands(const MelOptions& o, Complaints& c) {
  const double nyquist = o.sample_rate / 2.0;
  c.require(o.n_mels >= 1 && o.n_mels <= max_n_mels, "n_mels", o.n_mels, "from 1 to ", max_n_mels);
  const double given = o.fmax.value_or(0.0);
  const double fmax = given > 0.0 ? given : nyquist + given;
  if (o.sample_rate >= 1) {
    c.require(given <= nyquist && fmax > 0.0, "fmax", given,
              "above 0 and at most sample_rate / 2 (", nyquist,
              " Hz), or negative: that much below it");
  }
  if (fmax > 0.0) {
    c.require(o.fmin >= 0.0 && o.fmin < fmax, "fmin", o.fmin, "from 0 to below fmax (", fmax,
              " Hz)");
  }
  c.require(within(o.vtln_warp, 0.1, 10.0), "vtln_warp", o.vtln_warp, "from 0.1 to 10");
  if (o.vtln_warp == 1.0) return;
  const double high = o.vtln_high > 0.0 ? o.vtln_high : nyquist + o.vtln_high;
  c.require(o.vtln_low > o.fmin && o.vtln_low < high, "vtln_low", o.vtln_low, "above fmin (",
            o.fmin, " Hz) and below vtln_high (", high, " Hz)");
  c.require(high > o.vtln_low && high < fmax, "vtln_high", o.vtln_high, "above vtln_low (",
            o.vtln_low, " Hz) and below fmax (", fmax, " Hz), or negative: from sample_rate / 2");
  // The linear part in the middle must stay inside the range once it is warped.
  const double low_edge = o.vtln_low * std::max(1.0, o.vtln_warp);
  const double high_edge = high * std::min(1.0, o.vtln_warp);
  c.require(low_edge < high_edge, "vtln_warp", o.vtln_warp,
            "nearer to 1: the warped range ends before it begins");
}

void check_log(const MelOptions& o, Complaints& c) {
  const bool log = o.log != MelOptions::Log::none;
  // Below the smallest normal float the fast logarithm would not see the floor.
  c.require(!log || within(o.amin, smallest, huge), "amin", o.amin, "from ", smallest, " to ", huge,
            " when log is not none");
  c.require(within(o.ref, smallest, huge), "ref", o.ref, "from ", smallest, " to ", huge);
  c.require(log || o.ref == 1.0, "ref", o.ref, "1 when log is none");
  c.require(!o.ref_max || o.ref == 1.0, "ref", o.ref, "1 when the unit's maximum is the reference");
  c.require(log || !o.ref_max, "ref", "max", "a number when log is none");
  c.require(within(o.log_offset, 0.0, huge), "log_offset", o.log_offset, "from 0 to ", huge);
  c.require(log || o.log_offset == 0.0, "log_offset", o.log_offset, "0 when log is none");
  if (o.top_db) {
    c.require(within(*o.top_db, 0.0, huge), "top_db", *o.top_db, "from 0 to ", huge, " dB");
    c.require(log, "top_db", *o.top_db, "absent when log is none");
  }
  c.require(within(o.energy_floor, 0.0, huge), "energy_floor", o.energy_floor, "from 0 to ", huge);
  c.require(!o.use_energy || (!o.ref_max && !o.top_db), "use_energy", "true",
            "false with ref: max or top_db, which are for levels only");
}

void check_normalize(const MelOptions& o, Complaints& c) {
  using Normalize = MelOptions::Normalize;
  const auto fits = [&o](const std::vector<double>& values) {
    return values.size() == 1 || values.size() == static_cast<std::size_t>(columns(o));
  };
  if (o.normalize == Normalize::fixed) {
    c.require(fits(o.norm_mean), "norm_mean", std::to_string(o.norm_mean.size()) + " numbers",
              "1 number, or ", columns(o), ", one for each column, when normalize is fixed");
    c.require(o.norm_std.empty() || fits(o.norm_std), "norm_std",
              std::to_string(o.norm_std.size()) + " numbers", "1 number, or ", columns(o),
              ", one for each column");
  } else {
    c.require(o.norm_mean.empty(), "norm_mean", "set", "unset when normalize is not fixed");
    c.require(o.norm_std.empty(), "norm_std", "set", "unset when normalize is not fixed");
  }
  for (const double value : o.norm_mean) {
    c.require(within(value, -huge, huge), "norm_mean", value, "finite");
  }
  for (const double value : o.norm_std) {
    c.require(within(value, 1e-30, huge), "norm_std", value, "from 1e-30 to ", huge);
  }
  c.require(within(o.norm_eps, 0.0, huge), "norm_eps", o.norm_eps, "from 0 to ", huge);
}

}  // namespace

std::vector<MelOptionProblem> check(const MelOptions& options) {
  Complaints c;
  check_conditioning(options, c);
  check_window(options, c);
  check_framing(options, c);
  check_bands(options, c);
  check_log(options, c);
  check_normalize(options, c);
  return std::move(c.all);
}

MelOptions resolve(const MelOptions& options) {
  MelOptions o = options;
  o.win_length = options.win_length.value_or(o.n_fft);
  o.hop = options.hop.value_or(std::max(*o.win_length / 2, 1));
  if (o.snip_edges == true) o.snip_edges.reset();  // center is false already
  const int frame = o.align == MelOptions::Align::left ? *o.win_length : o.n_fft;
  if (o.snip_edges) {
    o.pad.reset();
  } else {
    o.pad = options.pad.value_or(o.center ? frame / 2 : 0);
    o.center = *o.pad > 0;  // from here on only a word for "padded"
  }
  const double nyquist = o.sample_rate / 2.0;
  const auto from_top = [nyquist](double hz) { return hz > 0.0 ? hz : nyquist + hz; };
  o.fmax = from_top(options.fmax.value_or(0.0));
  o.vtln_high = from_top(options.vtln_high);
  if (!o.gauss_std) o.gauss_std = *o.win_length / 8.0;
  return o;
}

int columns(const MelOptions& options) {
  const bool bins = options.output == MelOptions::Output::spectrogram;
  return (bins ? options.n_fft / 2 + 1 : options.n_mels) + (options.use_energy ? 1 : 0);
}

}  // namespace melflow
