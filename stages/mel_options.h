// The options of the mel stage: MelOptions as a person writes them.
#pragma once

#include <optional>

#include "pipeline/schema.h"
#include "stages/mel_plan.h"

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
struct EnumNames<MelOptions::PadMode> {
  static constexpr auto values = named<MelOptions::PadMode>(MelOptions::pad_mode_names);
};
template <>
struct EnumNames<MelOptions::Normalized> {
  static constexpr auto values = named<MelOptions::Normalized>(MelOptions::normalized_names);
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
struct EnumNames<MelOptions::Log> {
  static constexpr auto values = named<MelOptions::Log>(MelOptions::log_names);
};

/// The value that the log maps to 0: a number, or the unit's maximum.
struct Reference {
  double value = 1;
  bool is_max = false;
};
template <>
struct OptionType<Reference> {
  static std::string name() { return "number or max"; }
  static std::string parse(const Value& v, Reference& out) {
    if (v.is_scalar() && v.text() == "max") {
      out = {1, true};
      return {};
    }
    Reference r;
    std::string why = detail::parse_number(v, r.value);
    if (!why.empty()) return why + ", or max";
    if (r.value <= 0) return v.text() + " is out of range, allowed is more than 0, or max";
    out = r;
    return {};
  }
  static Value echo(const Reference& r) {
    return Value::scalar(r.is_max ? "max" : number_text(r.value));
  }
};

struct MelStageOptions {
  std::optional<int> sample_rate;
  MelOptions mel;
  Reference ref;

  void describe(Schema& s);
  /// `mel` with everything this struct keeps beside it.
  [[nodiscard]] MelOptions resolved() const;
};

}  // namespace melflow
