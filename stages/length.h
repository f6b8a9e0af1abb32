// A length of audio as it is written in a pipeline: samples (512) or time (10s, 25ms, 1.5min).
// Interfaces of stages that can tell the length of their output for a recording of known length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/options/schema.h"
#include "stages/items.h"

namespace melflow {

struct Length {
  std::int64_t samples = 0;  ///< the length where it is given in samples
  double seconds = -1;       ///< the length where it is given as a time [s], else -1

  Length() = default;
  explicit Length(std::int64_t of_samples) : samples(of_samples) {}
  static Length of_seconds(double seconds) {
    Length out;
    out.seconds = seconds;
    return out;
  }

  [[nodiscard]] bool is_time() const { return seconds >= 0; }
  [[nodiscard]] bool is_zero() const { return is_time() ? seconds == 0 : samples == 0; }
  /// The number of samples, for checking against a range; nothing for a time.
  [[nodiscard]] std::optional<double> as_number() const {
    return is_time() ? std::nullopt : std::optional(static_cast<double>(samples));
  }
  /// The length in samples at this rate, rounded to the nearest number, which may be 0; at most
  /// 10^15.
  [[nodiscard]] std::int64_t at(double sample_rate) const;
  /// Returns a warning that a number of samples may be meant in `unit` ("ms", "s"), as it is a
  /// shorter time than `least_seconds` at that rate: "10 is samples (1.25 ms at 8000 Hz); did you
  /// mean 10ms?"; "" where it is not shorter.
  [[nodiscard]] std::string unit_remark(double sample_rate, double least_seconds,
                                        std::string_view unit) const;
};

template <>
struct OptionType<Length> {
  static std::string name() { return "samples or time (512, 10s, 25ms)"; }
  static std::string parse(const Value& v, Length& out);
  static Value echo(const Length& v);
};

struct RecordingLength {
  int sample_rate = 0;       ///< [Hz]
  std::int64_t samples = 0;  ///< at that rate
  std::int64_t rows = -1;    ///< -1: it is not cut into rows
};

/// A stage that reads headers.
class ReadsLength {
 public:
  virtual ~ReadsLength() = default;
  /// Returns the length of the stage's output for a file, by the file's header; nothing where the
  /// header does not tell it or the stage would refuse the file. Opens the file.
  [[nodiscard]] virtual std::optional<RecordingLength> length_in_header(
      const FileRef& file) const = 0;
};

/// A stage whose output length follows from the length of its input.
class TellsLength {
 public:
  virtual ~TellsLength() = default;
  /// Returns nothing where the length depends on the samples, or the stage would refuse them.
  [[nodiscard]] virtual std::optional<RecordingLength> length_of(RecordingLength in) const = 0;
};

}  // namespace melflow
