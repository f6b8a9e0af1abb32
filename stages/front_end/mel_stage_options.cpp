#include "stages/front_end/mel_stage_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace melflow {

std::string OptionType<Reference>::parse(const Value& v, Reference& out) {
  if (v.is_scalar() && v.text() == "max") {
    out = {1, true};
    return {};
  }
  Reference r;
  std::string why = detail::parse_number(v, r.value);
  if (!why.empty()) return why + ", or max";
  if (r.value <= 0) return excerpt(v.text()) + " is out of range, allowed is more than 0, or max";
  out = r;
  return {};
}

std::vector<std::string> OptionType<PresetChoice>::choices() {
  std::vector<std::string> names{"none"};
  for (const MelPreset& preset : mel_presets()) names.emplace_back(preset.name);
  return names;
}

std::string OptionType<PresetChoice>::parse(const Value& v, PresetChoice& out) {
  if (v.is_null() || (v.is_scalar() && v.text() == "none")) {
    out.preset = nullptr;
    return {};
  }
  const MelPreset* found = v.is_scalar() ? find_preset(v.text()) : nullptr;
  if (found == nullptr) {
    std::string all;
    for (const std::string& c : choices()) all += (all.empty() ? "" : ", ") + c;
    return detail::describe_value(v) + " is not one of " + all +
           (v.is_scalar() ? did_you_mean(v.text(), choices()) : "");
  }
  out.preset = found;
  return {};
}

void MelStageOptions::take_preset() {
  if (preset.preset == nullptr) return;
  mel = preset.preset->options;
  sample_rate = mel.sample_rate;
  ref = {mel.ref, mel.ref_max};
}

void MelStageOptions::describe(Schema& s) {
  s.field("preset", preset,
          "sets every option below as the library or model of that name has it; what is written "
          "beside it changes that")
      .implies([this] { take_preset(); })
      .tuning();
  s.field("sample_rate", sample_rate,
          "of the recordings [Hz]; files of another rate fail; not set: that of the resample stage "
          "before")
      .range(1, 10'000'000);

  s.field("input_scale", mel.input_scale, "what full scale counts as: 1, or 32768 for Kaldi")
      .range(1e-6, 1e9);
  s.field("dither", mel.dither,
          "standard deviation of noise added to the samples, in units of the scaled samples")
      .range(0, 1e9);
  s.field("dither_seed", mel.dither_seed, "of that noise; the same noise for any number of threads")
      .used_with("dither", [this] { return mel.dither > 0; });
  s.field("preemphasis", mel.preemphasis, "k of x[t] - k x[t-1]").range(0, 1);
  s.field("preemphasis_of", mel.preemphasis_of,
          "the whole signal, whose first sample stays, or each frame by itself (Kaldi)")
      .used_with("preemphasis", [this] { return mel.preemphasis > 0; });
  s.field("remove_dc", mel.remove_dc, "subtracts the mean of each frame");

  s.field("n_fft", mel.n_fft, "length of the Fourier transform [samples]").range(2, 1 << 20);
  s.field("win_length", mel.win_length, "length of the analysis window [samples]; not set: n_fft")
      .range(1, 1 << 20);
  s.field("hop", mel.hop, "from frame to frame [samples]; not set: win_length / 2")
      .range(1, 1 << 24);
  s.field("align", mel.align,
          "where a window shorter than n_fft sits: in its middle, or at the left with zeros behind "
          "(Kaldi), a frame then being win_length samples")
      .used_with("win_length below n_fft",
                 [this] { return mel.win_length.value_or(mel.n_fft) < mel.n_fft; });
  s.field("window", mel.window, "shape of the analysis window");
  s.field("periodic", mel.periodic, "window for spectral analysis (true) or symmetric (false)")
      .used_with("a window that is not boxcar",
                 [this] { return mel.window != MelOptions::Window::boxcar; });
  s.field("kaiser_beta", mel.kaiser_beta, "of the kaiser window")
      .range(0, 500)
      .used_with("window: kaiser", [this] { return mel.window == MelOptions::Window::kaiser; });
  s.field("gauss_std", mel.gauss_std,
          "standard deviation of the gauss window [samples]; not set: win_length / 8")
      .range(1e-3, 1e9)
      .used_with("window: gauss", [this] { return mel.window == MelOptions::Window::gauss; });
  s.field("center", mel.center,
          "frames are centred on their time: half a frame is padded at both ends");
  s.field("pad", mel.pad,
          "samples padded at both ends; not set: half a frame with center, else none")
      .range(0, 1 << 20);
  s.field("pad_mode", mel.pad_mode,
          "what is padded; reflect does not repeat the end samples, symmetric does (Kaldi)")
      .used_with("padding (center, pad or snip_edges)", [this] {
        const MelOptions all = resolve(mel);
        return all.snip_edges || *all.pad > 0;
      });
  s.field(
      "snip_edges", mel.snip_edges,
      "Kaldi's placing of frames: true, only whole frames; false, one for every hop, centred on "
      "its middle; not set: as center says");
  s.field("drop_last", mel.drop_last, "leaves out the last frame (Whisper, NeMo)");

  s.field("normalized", mel.normalized,
          "divides the spectrum: by the window's root energy, or by the root of the frame length");
  s.field("power", mel.power, "exponent of the magnitude: 2 for power, 1 for amplitude")
      .range(0, 16)
      .greater_than(0);
  s.field("power_offset", mel.power_offset, "added to the squared magnitude (HiFi-GAN: 1e-9)")
      .at_least(0);
  s.field("output", mel.output, "mel bands, or the spectrogram they would be made of");

  const auto has_bands = [this] { return mel.output == MelOptions::Output::mel; };
  const auto is_warped = [this, has_bands] { return has_bands() && mel.vtln_warp != 1.0; };
  s.field("n_mels", mel.n_mels, "number of mel bands")
      .range(1, 65536)
      .used_with("output: mel", has_bands);
  s.field("fmin", mel.fmin, "lower edge of the lowest band [Hz]")
      .at_least(0)
      .used_with("output: mel", has_bands);
  s.field("fmax", mel.fmax,
          "upper edge of the highest band [Hz]; 0 or less: counted from sample_rate / 2, which is "
          "the default")
      .used_with("output: mel", has_bands);
  s.field("mel_scale", mel.mel_scale,
          "htk: 2595 log10(1 + f/700); kaldi: 1127 ln(1 + f/700); slaney: linear below 1 kHz")
      .used_with("output: mel", has_bands);
  s.field("norm", mel.mel_norm, "slaney: every triangle has area 1; none: peak 1")
      .used_with("output: mel", has_bands);
  s.field("triangles", mel.triangles,
          "straight over Hz, or over mel (Kaldi); left_width: over Hz, both flanks as wide as the "
          "left one (SpeechBrain)")
      .used_with("output: mel", has_bands);
  s.field("htk_mode", mel.htk_mode,
          "as HTK: the first band loses its first weight when fmin is above 0, and bands are "
          "floored at 1")
      .used_with("output: mel", has_bands);
  s.field("vtln_warp", mel.vtln_warp, "warp factor for the length of the vocal tract; 1: none")
      .range(0.1, 10)
      .used_with("output: mel", has_bands);
  s.field("vtln_low", mel.vtln_low, "lower end of the warp's linear part [Hz]")
      .used_with("vtln_warp", is_warped);
  s.field("vtln_high", mel.vtln_high,
          "upper end of it [Hz]; 0 or less: counted from sample_rate / 2")
      .used_with("vtln_warp", is_warped);

  s.field("use_energy", mel.use_energy, "one more column: the natural log of the frame's energy");
  const auto has_energy = [this] { return mel.use_energy; };
  s.field("raw_energy", mel.raw_energy,
          "that energy before pre-emphasis and window (true) or after them")
      .used_with("use_energy", has_energy);
  s.field("energy_floor", mel.energy_floor, "floor of that energy; never below 1.2e-7, as in Kaldi")
      .at_least(0)
      .used_with("use_energy", has_energy);
  s.field("htk_compat", mel.htk_compat, "the energy is the last column, not the first")
      .used_with("use_energy", has_energy);

  s.field("log", mel.log, "none, natural, base 10, or decibels");
  const auto has_log = [this] { return mel.log != MelOptions::Log::none; };
  s.field("amin", mel.amin, "floor before the logarithm")
      .greater_than(0)
      .used_with("log: ln, log10 or db", has_log);
  s.field("ref", ref,
          "value that the logarithm maps to 0; max: the largest of the segment, or "
          "without segments of the file")
      .used_with("log: ln, log10 or db", has_log);
  s.field("top_db", mel.top_db,
          "floor below the largest value of the segment or file, in dB of the level (20/power times "
          "log10) whatever the log (Whisper: 80)")
      .at_least(0)
      .used_with("log: ln, log10 or db", has_log);
  s.field("log_offset", mel.log_offset, "added before the floor: log(x + log_offset)")
      .at_least(0)
      .used_with("log: ln, log10 or db", has_log);

  s.field("normalize", mel.normalize,
          "(x - mean) / std: fixed by norm_mean and norm_std; per_feature: of each column over the "
          "segment or file; all_features: of all its values");
  const auto is_fixed = [this] { return mel.normalize == MelOptions::Normalize::fixed; };
  const auto is_normalized = [this] { return mel.normalize != MelOptions::Normalize::none; };
  s.field("norm_mean", mel.norm_mean, "for fixed: one number, or one for each column")
      .used_with("normalize: fixed", is_fixed);
  s.field("norm_std", mel.norm_std, "for fixed: likewise; not set: 1")
      .used_with("normalize: fixed", is_fixed);
  s.field("norm_variance", mel.norm_variance, "false: only the mean is subtracted")
      .used_with("normalize", is_normalized);
  s.field("norm_eps", mel.norm_eps, "added to the standard deviation, but for fixed")
      .at_least(0)
      .used_with("normalize: per_feature or all_features",
                 [is_fixed, is_normalized] { return is_normalized() && !is_fixed(); });

  s.field(
      "precision", mel.precision,
      "what samples, transform and bands are computed in: float; double (on the CPU only), where "
      "values 60 dB and more below a frame's peak count");
}

MelOptions MelStageOptions::resolved() const {
  MelOptions o = mel;
  if (sample_rate) o.sample_rate = *sample_rate;
  o.ref = ref.value;
  o.ref_max = ref.is_max;
  // A preset's statistics go with its normalisation: `normalize: none` alone takes both away.
  if (preset.preset != nullptr && o.normalize != MelOptions::Normalize::fixed) {
    const MelOptions& theirs = preset.preset->options;
    if (o.norm_mean == theirs.norm_mean) o.norm_mean.clear();
    if (o.norm_std == theirs.norm_std) o.norm_std.clear();
  }
  return o;
}

std::string MelStageOptions::preset_text() const {
  if (preset.preset == nullptr) return {};
  const auto settings = [](MelStageOptions options) {
    Schema s;
    options.describe(s);
    return s.echo();
  };
  MelStageOptions original;
  original.preset = preset;
  original.take_preset();
  const Value theirs = settings(original), ours = settings(*this);
  std::vector<std::string> changed;
  for (const Value::Entry& e : ours.entries())
    if (const Value* other = theirs.find(e.key);
        other == nullptr || to_json(*other) != to_json(e.value))
      changed.push_back(e.key);
  std::string text(preset.preset->name);
  for (std::size_t i = 0; i < changed.size(); ++i)
    text += (i == 0 ? ", with " : i + 1 == changed.size() ? " and " : ", ") + changed[i];
  return text + (changed.empty() ? "" : " changed");
}

std::string MelStageOptions::origin_of(const std::string& option) const {
  if (preset.preset == nullptr) return {};
  const auto value_of = [&option](MelStageOptions options) {
    Schema s;
    options.describe(s);
    const Value all = s.echo();
    const Value* value = all.find(option);
    return value == nullptr ? std::string("null") : to_json(*value);
  };
  MelStageOptions original;
  original.preset = preset;
  original.take_preset();
  const std::string theirs = value_of(original);
  if (theirs == "null" || theirs != value_of(*this)) return {};
  return fmt::format(" (set by preset {}; {}: null takes it away where it may be unset)",
                     preset.preset->name, option);
}

std::string MelStageOptions::preset_remark() const {
  if (preset.preset == nullptr || !preset.preset->has_fixed_times) return {};
  const MelOptions &theirs = preset.preset->options, ours = resolved();
  if (ours.sample_rate == theirs.sample_rate || ours.hop != theirs.hop ||
      ours.win_length != theirs.win_length || ours.n_fft != theirs.n_fft)
    return {};
  return fmt::format(
      "{} has frames of {} samples every {} at {} Hz; at {} Hz they last {:.3g} times as long. Set "
      "n_fft, win_length and hop, or resample to {} Hz",
      preset.preset->name, theirs.win_length.value_or(theirs.n_fft), *theirs.hop,
      theirs.sample_rate, ours.sample_rate,
      static_cast<double>(theirs.sample_rate) / ours.sample_rate, theirs.sample_rate);
}

Value MelStageOptions::canonical(const MelOptions& options) {
  MelStageOptions stage;
  stage.mel = resolve(options);
  stage.sample_rate = options.sample_rate;
  stage.ref = {options.ref, options.ref_max};
  MelOptions& o = stage.mel;
  o.energy_floor = std::max(o.energy_floor, kEnergyEpsilon);
  if (!o.norm_variance || o.norm_std.empty()) o.norm_std = {1.0};
  for (std::vector<double>* values : {&o.norm_mean, &o.norm_std}) {
    const auto is_first = [values](double value) { return value == values->front(); };
    if (values->size() > 1 && std::all_of(values->begin(), values->end(), is_first))
      *values = std::vector<double>(1, values->front());
  }

  Schema s;
  stage.describe(s);
  const Value all = s.echo();
  // Said by `pad`, and by norm_std.
  std::set<std::string> said{"preset", "center"};
  if (o.normalize == MelOptions::Normalize::fixed) said.insert("norm_variance");
  // Older outputs do not say it.
  if (o.precision == MelOptions::Precision::float32) said.insert("precision");
  Value out = Value::map({});
  for (const Field& f : s.fields())
    if (f.is_used() && !said.contains(f.name)) out.set(f.name, *all.find(f.name));
  return out;
}

}  // namespace melflow
