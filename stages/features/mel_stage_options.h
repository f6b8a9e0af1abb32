// The options of the mel stage: MelOptions as written in a configuration.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "stages/features/mel/mel_options.h"
#include "stages/features/mel/mel_presets.h"
#include "stages/features/option_fields.h"
#include "stages/length.h"
#include "stages/sample_rate.h"

namespace melflow {

template <>
struct OptionType<MelOptions::Reference> {
  static std::string name() { return "number or max"; }
  static std::string parse(const Value& v, MelOptions::Reference& out);
  static Value echo(const MelOptions::Reference& r) {
    return Value::scalar(r.is_max ? "max" : number_text(r.value));
  }
};

/// A list, or the path of a .npy file, which is read at once.
template <>
struct OptionType<MelOptions::WindowValues> {
  static std::string name() { return "list of number, or path"; }
  static std::string parse(const Value& v, MelOptions::WindowValues& out);
  static Value echo(const MelOptions::WindowValues& w) {
    return w.file.empty() ? OptionType<std::vector<double>>::echo(w.numbers)
                          : Value::scalar(w.file, {}, true);
  }
};

/// The path of a .npy file, which is read at once, or a list of rows.
template <>
struct OptionType<MelOptions::Filters> {
  static std::string name() { return "path, or list of list of number"; }
  static std::string parse(const Value& v, MelOptions::Filters& out);
  static Value echo(const MelOptions::Filters& f);
};

/// One of mel_presets(); null for none.
struct PresetChoice {
  const MelPreset* preset = nullptr;
};
template <>
struct OptionType<PresetChoice> {
  static std::string name() { return "choice"; }
  static std::vector<std::string> choices();
  static std::string parse(const Value& v, PresetChoice& out);
  static Value echo(const PresetChoice& c) {
    return c.preset != nullptr ? Value::scalar(std::string(c.preset->name)) : Value{};
  }
};

struct MelStageOptions {
  PresetChoice preset;
  // These replace members of `mel`. Without sample_rate, the rate of the input applies.
  std::optional<SampleRate> sample_rate;
  std::optional<Length> win_length, hop;
  MelOptions mel;

  /// Describes the preset, and every row of mel_option_table().
  void describe(Schema& s);
  /// Puts the numbers of .npy files beside their paths; reading that needs no file.
  void keep_files(Value& settings) const;
  /// Sets all options, as if each had been written.
  void set(const MelOptions& options);
  /// Returns `mel` with the members above; times become samples at its rate, rounded.
  [[nodiscard]] MelOptions resolved() const;
  /// Returns the problems of times at a rate [Hz]: they must be whole numbers of samples, since
  /// libraries round differently.
  [[nodiscard]] std::vector<MelOptionProblem> check_times(int rate) const;
  /// Returns warnings about lengths in samples that look like times, at that rate.
  [[nodiscard]] std::vector<MelOptionProblem> unit_remarks(int rate) const;
  /// The preset and the changed options, for people: "whisper", "whisper, with n_mels and top_db
  /// changed"; "" without a preset.
  [[nodiscard]] std::string preset_text() const;
  /// " (from preset whisper; ...)" for an option that still has the preset's value, else "".
  [[nodiscard]] std::string from_preset(const std::string& option) const;
  /// A warning about a changed preset whose frames no longer have the preset's duration, or "".
  [[nodiscard]] std::string preset_remark() const;
  /// A warning if the preset's model takes windows of one length and these have another (`window`
  /// [samples]; 0: recordings are not cut); else "".
  [[nodiscard]] std::string window_remark(std::int64_t window) const;
  /// A warning about preset librosa with decibels, as librosa's power_to_db also limits the range
  /// by default, or "".
  [[nodiscard]] std::string range_remark() const;
  /// The settings that can change a value of the rows, with derived defaults and without options
  /// that have no effect; equal for equal features. Requires check(resolved()) to be empty.
  [[nodiscard]] static Value canonical(const MelOptions& options);

 private:
  void take_preset();
};

}  // namespace melflow
