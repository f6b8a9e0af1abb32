// The options of the mel stage: MelOptions as a person writes them.
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "pipeline/schema.h"
#include "stages/features/mel/mel_options.h"
#include "stages/features/mel/mel_presets.h"
#include "stages/length.h"
#include "stages/sample_rate.h"

namespace melflow {

/// The choices of MelOptions.
template <class E>
requires requires(E e) { names(e); }
struct EnumNames<E> {
  static constexpr auto values = [] {
    constexpr auto texts = names(E{});
    std::array<std::pair<const char*, E>, texts.size()> out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = {texts[i].data(), static_cast<E>(i)};
    return out;
  }();
};

template <>
struct OptionType<MelOptions::Reference> {
  static std::string name() { return "number or max"; }
  static std::string parse(const Value& v, MelOptions::Reference& out);
  static Value echo(const MelOptions::Reference& r) {
    return Value::scalar(r.is_max ? "max" : number_text(r.value));
  }
};

/// One of mel_presets(), or none.
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
  // Instead of those of `mel`; of the rate not set: as what arrives.
  std::optional<SampleRate> sample_rate;
  std::optional<Length> win_length, hop;
  MelOptions mel;

  /// The preset, and every row of mel_option_table().
  void describe(Schema& s);
  /// As if all of these were written.
  void set(const MelOptions& options);
  /// `mel` with everything this struct keeps beside it; times are samples at its rate, rounded.
  [[nodiscard]] MelOptions resolved() const;
  /// What is wrong with times at a rate [Hz]: they have to be whole numbers of samples, since
  /// libraries do not agree on how to round.
  [[nodiscard]] std::vector<MelOptionProblem> check_times(int rate) const;
  /// "whisper", "whisper, with n_mels and top_db changed", "" without a preset.
  [[nodiscard]] std::string preset_text() const;
  /// " (from preset whisper; ...)" for an option that still has the preset's value, else "".
  [[nodiscard]] std::string origin_of(const std::string& option) const;
  /// What should be told of a preset that was changed: frames whose duration is no longer its own.
  [[nodiscard]] std::string preset_remark() const;
  /// What should be told of preset librosa with decibels, where power_to_db does more by default.
  [[nodiscard]] std::string range_remark() const;
  /// What of these settings can change a value of the rows, derived defaults filled in and without
  /// what has no effect: equal for equal features. Requires check(resolved()) to be empty.
  [[nodiscard]] static Value canonical(const MelOptions& options);

 private:
  void take_preset();
};

}  // namespace melflow
