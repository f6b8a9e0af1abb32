// What the stage quality measures of a recording. The table of measures is the only place that
// names them: options, conditions of filter, columns of outputs and the documentation follow it.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace melflow {

/// The measures, in the order of the table.
enum class Measure : unsigned char {
  peak,
  rms,
  dc,
  clipped_share,
  clipped_runs,
  clipped_at,
  quiet_share,
  quiet_longest,
  silent_share,
  silent_longest,
  silent_at,
  noise_floor,
  dead_channels,
  equal_channels,
  inverted_channels,
  dropouts,
  dropout_at,
  repeats,
  repeat_at,
  clicks,
  click_at,
  snr,
  bandwidth,
  hum,
  hum_hz,
  lost_share,
  rate_ratio,
  length_ratio,
  seconds_per_character,
  loudness,
  loudness_range,
  loudness_momentary,
  loudness_short_term,
  true_peak,
  speech_share,
  count
};
inline constexpr std::size_t kMeasureCount = static_cast<std::size_t>(Measure::count);

/// What a measure's number is.
enum class MeasureUnit : unsigned char {
  level,  ///< as a fraction of full scale
  share,  ///< 0 to 1
  seconds,
  hertz,
  decibels,
  count,
  number
};

/// What has to be computed for a measure; one kernel makes several.
enum class MeasureKernel : unsigned char {
  levels,
  clipping,
  dropouts,
  repeats,
  clicks,
  snr,
  bandwidth,
  hum,
  loudness,
  true_peak,
  facts,
  marks  ///< of what a stage has marked, by the stage speech_share
};

struct MeasureInfo {
  const char* name;
  MeasureUnit unit;
  MeasureKernel kernel;
  bool is_default;     ///< whether it is measured where nothing is chosen
  const char* column;  ///< the name of its column, and of the condition: "quality." and the name
  const char* what;    ///< for the documentation: the definition
  const char* source;  ///< of the definition; "" for melflow's own
};

std::span<const MeasureInfo, kMeasureCount> measures();
inline const MeasureInfo& info_of(Measure m) { return measures()[static_cast<std::size_t>(m)]; }
/// The measure of that name, or null.
const MeasureInfo* measure_named(std::string_view name);
inline Measure measure_of(const MeasureInfo& info) {
  return static_cast<Measure>(&info - measures().data());
}
/// "seconds", "dB", ...; for messages and tables.
const char* to_text(MeasureUnit unit);

using MeasureSet = std::bitset<kMeasureCount>;
MeasureSet default_measures();
/// All that the stage quality measures.
MeasureSet decoded_measures();

/// The values of a recording; NaN for one that was not measured, or has none for this recording.
struct MeasureValues {
  MeasureValues();
  float& operator[](Measure m) { return of[static_cast<std::size_t>(m)]; }
  float operator[](Measure m) const { return of[static_cast<std::size_t>(m)]; }
  std::array<float, kMeasureCount> of;
};

}  // namespace melflow
