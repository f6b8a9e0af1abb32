// The options of the mel stage: MelOptions as a person writes them.
#pragma once

#include <optional>

#include "mel/mel_options.h"
#include "mel/mel_presets.h"
#include "pipeline/schema.h"

namespace melflow {

template <class E, std::size_t N>
constexpr auto named(const std::array<std::string_view, N>& names) {
  std::array<std::pair<const char*, E>, N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = {names[i].data(), static_cast<E>(i)};
  return out;
}

template <>
struct EnumNames<MelOptions::Window> {
  static constexpr auto values = named<MelOptions::Window>(MelOptions::window_names);
};
template <>
struct EnumNames<MelOptions::Align> {
  static constexpr auto values = named<MelOptions::Align>(MelOptions::align_names);
};
template <>
struct EnumNames<MelOptions::PadMode> {
  static constexpr auto values = named<MelOptions::PadMode>(MelOptions::pad_mode_names);
};
template <>
struct EnumNames<MelOptions::PreemphasisOf> {
  static constexpr auto values = named<MelOptions::PreemphasisOf>(MelOptions::preemphasis_of_names);
};
template <>
struct EnumNames<MelOptions::Normalized> {
  static constexpr auto values = named<MelOptions::Normalized>(MelOptions::normalized_names);
};
template <>
struct EnumNames<MelOptions::Output> {
  static constexpr auto values = named<MelOptions::Output>(MelOptions::output_names);
};
template <>
struct EnumNames<MelOptions::MelScale> {
  static constexpr auto values = named<MelOptions::MelScale>(MelOptions::mel_scale_names);
};
template <>
struct EnumNames<MelOptions::MelNorm> {
  static constexpr auto values = named<MelOptions::MelNorm>(MelOptions::mel_norm_names);
};
template <>
struct EnumNames<MelOptions::Triangles> {
  static constexpr auto values = named<MelOptions::Triangles>(MelOptions::triangles_names);
};
template <>
struct EnumNames<MelOptions::Log> {
  static constexpr auto values = named<MelOptions::Log>(MelOptions::log_names);
};
template <>
struct EnumNames<MelOptions::Normalize> {
  static constexpr auto values = named<MelOptions::Normalize>(MelOptions::normalize_names);
};
template <>
struct EnumNames<MelOptions::Precision> {
  static constexpr auto values = named<MelOptions::Precision>(MelOptions::precision_names);
};

/// The value that the log maps to 0: a number, or the unit's maximum.
struct Reference {
  double value = 1;
  bool is_max = false;
};
template <>
struct OptionType<Reference> {
  static std::string name() { return "number or max"; }
  static std::string parse(const Value& v, Reference& out);
  static Value echo(const Reference& r) {
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
  std::optional<int> sample_rate;
  MelOptions mel;
  Reference ref;

  void describe(Schema& s);
  /// `mel` with everything this struct keeps beside it.
  [[nodiscard]] MelOptions resolved() const;
  /// "whisper", "whisper, with n_mels and top_db changed", "" without a preset.
  [[nodiscard]] std::string preset_text() const;
  /// " (from preset whisper; ...)" for an option that still has the preset's value, else "".
  [[nodiscard]] std::string origin_of(const std::string& option) const;
  /// What should be told of a preset that was changed: frames whose duration is no longer its own.
  [[nodiscard]] std::string preset_remark() const;
  /// What of these settings can change a value of the rows, derived defaults filled in and without
  /// what has no effect: equal for equal features. Requires check(resolved()) to be empty.
  [[nodiscard]] static Value canonical(const MelOptions& options);

 private:
  void take_preset();
};

}  // namespace melflow
