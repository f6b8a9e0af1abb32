#include "stages/features/mel/mel_options.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <type_traits>

#include "stages/features/mel/mel_option_table.h"

namespace melflow {
namespace {

using Window = MelOptions::Window;

struct Complaints {
  std::vector<MelOptionProblem> all;

  template <class T, class... Text>
  void require(bool ok, std::string_view option, const T& value, const Text&... allowed) {
    if (ok) return;
    std::ostringstream text;
    text << option << " is " << value << " but must be ";
    (text << ... << allowed);
    all.push_back({std::string(option), text.str()});
  }
};

// torchaudio's default fmax is a whole number of Hz.
double default_fmax(const MelOptions& o) {
  const double nyquist = filter_rate(o) / 2.0;
  return o.bin_hz == MelOptions::BinHz::torchaudio ? std::floor(nyquist) : nyquist;
}

const char* text(bool value) { return value ? "true" : "false"; }

std::string text(double value) { return shortest(value); }

// Checks numbers against the ranges of the table, those of a list one by one.
void check_ranges(const MelOptions& o, Complaints& c) {
  for (const MelOptionRow& row : mel_option_table()) {
    const auto check = [&](double value) {
      c.require(row.range.has(value), row.name, value, allowed(row));
    };
    std::visit(
        [&](auto member) {
          const auto& value = o.*member;
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, int> || std::is_same_v<T, double>) {
            check(value);
          } else if constexpr (std::is_same_v<T, std::optional<int>> ||
                               std::is_same_v<T, std::optional<double>>) {
            if (value) check(*value);
          } else if constexpr (std::is_same_v<T, MelOptions::Reference>) {
            check(value.value);
          } else if constexpr (std::is_same_v<T, std::vector<double>>) {
            for (const double one : value) check(one);
          } else if constexpr (requires { value.numbers; }) {
            // Only the first wrong one: there may be thousands.
            const auto wrong = std::find_if_not(value.numbers.begin(), value.numbers.end(),
                                                [&](double one) { return row.range.has(one); });
            if (wrong != value.numbers.end()) {
              const auto at = std::to_string(wrong - value.numbers.begin());
              c.require(false, row.name, at + ": " + text(*wrong), allowed(row));
            }
          }
        },
        row.member);
  }
}

void check_window_values(const MelOptions& o, Complaints& c) {
  const std::vector<double>& values = o.window_values.numbers;
  const auto count = static_cast<int>(values.size());
  if (o.window != MelOptions::Window::values) {
    c.require(values.empty(), "window_values", "set", "unset when window is not values");
    return;
  }
  const int expected = o.win_length.value_or(o.n_fft);
  c.require(count == expected, "window_values", std::to_string(count) + " numbers", expected,
            ", one for each sample of win_length, when window is values");
  const auto is_zero = [](double value) { return value == 0.0; };
  c.require(values.empty() || !std::all_of(values.begin(), values.end(), is_zero), "window_values",
            "all zeros", "at least one other number");
}

void check_filters(const MelOptions& o, Complaints& c) {
  const auto& [values, rows, columns_, file] = o.filters;
  if (values.empty()) return;
  const int bins = o.n_fft / 2 + 1;
  const bool fits =
      (rows == o.n_mels && columns_ == bins) || (rows == bins && columns_ == o.n_mels);
  const int bands = columns_ == bins ? rows : rows == bins ? columns_ : o.n_mels;
  std::ostringstream advice;
  if (bands != o.n_mels) advice << "; for this one set n_mels: " << bands;
  c.require(fits, "filters", std::to_string(rows) + " by " + std::to_string(columns_) + " numbers",
            o.n_mels, " by ", bins, " or ", bins, " by ", o.n_mels,
            ", the bands (n_mels) and the bins (n_fft / 2 + 1)", advice.str());
  const auto is_zero = [](double value) { return value == 0.0; };
  c.require(!std::all_of(values.begin(), values.end(), is_zero), "filters", "all zeros",
            "at least one other number");
}

void check_framing(const MelOptions& o, Complaints& c) {
  c.require(o.win_length.value_or(0) <= o.n_fft, "win_length", o.win_length.value_or(0),
            "at most n_fft (", o.n_fft, ") samples");
  // Both values of the two-sample window are its zero ends.
  const bool zero_ends = !o.periodic && (o.window == Window::hann || o.window == Window::blackman ||
                                         o.window == Window::povey ||
                                         o.window == Window::bartlett || o.window == Window::sine ||
                                         (o.window == Window::tukey && o.tukey_alpha > 0) ||
                                         (o.window == Window::hamming && o.hamming_alpha == 0.5));
  c.require(!zero_ends || o.win_length.value_or(o.n_fft) != 2, "win_length", 2,
            "other than 2 for a symmetric ", name_of(o.window),
            " window, which would be all zeros");
  check_window_values(o, c);
  using PadMode = MelOptions::PadMode;
  if (o.pad_mode == PadMode::linear_ramp)
    c.require(!o.snip_edges, "pad_mode", "linear_ramp",
              "another one when snip_edges is set: the ramp ends where pad does");
  if (o.snip_edges) {
    c.require(!o.center, "snip_edges", text(*o.snip_edges),
              "unset when center is true: both place the frames");
    c.require(o.pad.value_or(0) == 0, "pad", o.pad.value_or(0), "unset when snip_edges is set");
    c.require(o.pad_zeros == 0, "pad_zeros", o.pad_zeros, "0 when snip_edges is set");
    c.require(*o.snip_edges || !o.drop_exact, "drop_exact", "true",
              "false when snip_edges is false, which has a frame for every hop");
    c.require(*o.snip_edges || o.partial_frames == MelOptions::PartialFrames::none,
              "partial_frames", name_of(o.partial_frames),
              "none when snip_edges is false, which has a frame for every hop");
  }
  c.require(!o.drop_exact || o.partial_frames == MelOptions::PartialFrames::none, "partial_frames",
            name_of(o.partial_frames), "none with drop_exact, which drops even whole frames");
}

void check_bins(const MelOptions& o, Complaints& c) {
  if (o.power_ceiling)
    c.require(*o.power_ceiling >= o.power_floor, "power_ceiling", *o.power_ceiling,
              "at least power_floor (", o.power_floor, ")");
}

void check_bands(const MelOptions& o, Complaints& c) {
  if (!o.filters.numbers.empty()) return check_filters(o, c);
  const double nyquist = filter_rate(o) / 2.0;
  const char* const rate = o.filter_rate ? "filter_rate" : "sample_rate";
  const double given = o.fmax.value_or(0.0);
  const double fmax = given > 0.0 ? given : default_fmax(o) + given;
  if (filter_rate(o) >= 1) {
    c.require(given <= nyquist && fmax > 0.0, "fmax", given, "at most ", rate, " / 2 (", nyquist,
              " Hz); 0 or less counts down from there");
  }
  std::string by_default;
  if (!o.fmax) by_default.append(", which is half of ").append(rate).append(" where it is not set");
  if (fmax > 0.0)
    c.require(!(o.fmin >= fmax), "fmin", o.fmin, "below fmax (", fmax, " Hz", by_default, ")");
  if (o.vtln_warp == 1.0) return;
  const double high = o.vtln_high > 0.0 ? o.vtln_high : nyquist + o.vtln_high;
  c.require(o.vtln_low > o.fmin && o.vtln_low < high, "vtln_low", o.vtln_low, "above fmin (",
            o.fmin, " Hz) and below vtln_high (", high, " Hz)");
  c.require(high > o.vtln_low && high < fmax, "vtln_high", o.vtln_high, "above vtln_low (",
            o.vtln_low, " Hz) and below fmax (", fmax, " Hz), or negative: from ", rate, " / 2");
  // The linear part in the middle must stay within the range after warping.
  const double low_edge = o.vtln_low * std::max(1.0, o.vtln_warp);
  const double high_edge = high * std::min(1.0, o.vtln_warp);
  c.require(low_edge < high_edge, "vtln_warp", o.vtln_warp,
            "nearer to 1: the warped range ends before it begins");
}

void check_log(const MelOptions& o, Complaints& c) {
  const bool log = has_plain_log(o);
  const auto& [ref, ref_is_max] = o.ref;
  const std::string advice =
      " when log is " + std::string(name_of(o.log)) + "; set log: db, ln or log10, or remove this";
  c.require(log || ref == 1.0, "ref", ref, "1", advice);
  c.require(!ref_is_max || ref == 1.0, "ref", ref,
            "1 when the utterance's maximum is the reference");
  c.require(log || !ref_is_max, "ref", "max", "a number", advice);
  c.require(log || o.log_offset == 0.0, "log_offset", o.log_offset, "0", advice);
  if (o.top_db) c.require(log, "top_db", *o.top_db, "absent", advice);
  c.require(!o.use_energy || (!ref_is_max && !o.top_db), "use_energy", "true",
            "false with ref: max or top_db, which are for levels only");
}

void check_normalize(const MelOptions& o, Complaints& c) {
  using Normalize = MelOptions::Normalize;
  const auto fits = [&o](const std::vector<double>& values) {
    return values.size() == 1 || values.size() == static_cast<std::size_t>(columns(o));
  };
  if (o.normalize == Normalize::fixed) {
    c.require(fits(o.norm_mean), "norm_mean",
              o.norm_mean.empty() ? "missing" : std::to_string(o.norm_mean.size()) + " numbers",
              "1 number, or ", columns(o), ", one for each column, when normalize is fixed");
    c.require(o.norm_std.empty() || fits(o.norm_std), "norm_std",
              std::to_string(o.norm_std.size()) + " numbers", "1 number, or ", columns(o),
              ", one for each column");
  } else {
    c.require(o.norm_mean.empty(), "norm_mean", "set", "unset when normalize is not fixed");
    c.require(o.norm_std.empty(), "norm_std", "set", "unset when normalize is not fixed");
  }
}

}  // namespace

std::vector<MelOptionProblem> check(const MelOptions& options) {
  Complaints c;
  check_ranges(options, c);
  check_framing(options, c);
  check_bins(options, c);
  check_bands(options, c);
  check_log(options, c);
  check_normalize(options, c);
  return std::move(c.all);
}

MelOptions resolve(const MelOptions& options) {
  MelOptions o = options;
  o.win_length = options.win_length.value_or(o.n_fft);
  o.hop = options.hop.value_or(std::max(*o.win_length / 2, 1));
  o.filter_rate = filter_rate(options);
  if (o.snip_edges == true) o.snip_edges.reset();  // center is false already
  const int frame = o.align == MelOptions::Align::left ? *o.win_length : o.n_fft;
  if (o.snip_edges) {
    o.pad.reset();
  } else {
    o.pad = options.pad.value_or(o.center ? frame / 2 : 0);
    o.center = *o.pad > 0;  // when resolved: whether the ends are padded
  }
  const double nyquist = filter_rate(o) / 2.0;
  const auto from_top = [](double hz, double top) { return hz > 0.0 ? hz : top + hz; };
  o.fmax = from_top(options.fmax.value_or(0.0), default_fmax(o));
  o.vtln_high = from_top(options.vtln_high, nyquist);
  if (!o.gauss_std) o.gauss_std = *o.win_length / 8.0;
  return o;
}

MelOptions canonical(const MelOptions& options) {
  MelOptions o = resolve(options);
  o.energy_floor = std::max(o.energy_floor, o.energy_eps);
  if (o.bin_hz == MelOptions::BinHz::speechbrain) o.bin_hz = MelOptions::BinHz::torchaudio;
  if (!o.norm_variance || o.norm_std.empty()) o.norm_std = {1.0};
  for (std::vector<double>* values : {&o.norm_mean, &o.norm_std}) {
    const auto is_first = [values](double value) { return value == values->front(); };
    if (values->size() > 1 && std::all_of(values->begin(), values->end(), is_first))
      *values = std::vector<double>(1, values->front());
  }
  return o;
}

double band_floor(const MelOptions& options) {
  using HtkMode = MelOptions::HtkMode;
  if (options.output == MelOptions::Output::spectrogram || !options.filters.numbers.empty())
    return 0.0;
  const bool log = options.log != MelOptions::Log::none;
  const bool is_floored =
      options.htk_mode == HtkMode::kaldi || (options.htk_mode == HtkMode::htk && log);
  return is_floored ? 1.0 : 0.0;
}

std::string unit_of(const MelOptions& o) {
  const std::string quantity = o.power == 2   ? "power"
                               : o.power == 1 ? "amplitude"
                                              : "amplitude^" + shortest(o.power);
  std::string unit;
  switch (o.log) {
    case MelOptions::Log::none:
      unit = quantity;
      break;
    case MelOptions::Log::ln:
    case MelOptions::Log::log10:
      unit = std::string(name_of(o.log)) + " " + quantity;
      break;
    case MelOptions::Log::db:
      unit = "dB";
      break;
    case MelOptions::Log::piecewise:
      unit = "piecewise ln " + quantity;
      break;
  }
  return o.normalize == MelOptions::Normalize::none ? unit : unit + ", normalized";
}

int columns(const MelOptions& options) {
  const bool bins = options.output == MelOptions::Output::spectrogram;
  return (bins ? options.n_fft / 2 + 1 : options.n_mels) + (options.use_energy ? 1 : 0);
}

}  // namespace melflow
