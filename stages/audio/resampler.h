// Changes the sample rate of a recording that comes in pieces, with libsoxr: its samples do not
// depend on the pieces.
#pragma once

#include <soxr.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pipeline/stage/registry.h"
#include "stages/items.h"
#include "stages/sample_rate.h"

namespace melflow {

enum class ResampleQuality { quick, low, medium, high, very_high };
template <>
struct EnumNames<ResampleQuality> {
  static constexpr std::pair<const char*, ResampleQuality> values[] = {
      {"quick", ResampleQuality::quick},
      {"low", ResampleQuality::low},
      {"medium", ResampleQuality::medium},
      {"high", ResampleQuality::high},
      {"very_high", ResampleQuality::very_high}};
};

enum class ResampleLength { round, ceil, librosa };
template <>
struct EnumNames<ResampleLength> {
  static constexpr std::pair<const char*, ResampleLength> values[] = {
      {"round", ResampleLength::round},
      {"ceil", ResampleLength::ceil},
      {"librosa", ResampleLength::librosa}};
};

struct ResampleOptions {
  SampleRate rate = 16000;
  ResampleQuality quality = ResampleQuality::high;
  ResampleLength length = ResampleLength::round;

  void describe(Schema& s);
  /// The number of samples that `count` samples at `from` [Hz] become.
  [[nodiscard]] std::int64_t samples_of(std::int64_t count, int from) const;
};

/// One recording on its way. From one thread at a time.
class Resampler {
 public:
  /// From `from` to options.rate [Hz]. Fails where libsoxr cannot do it.
  static Result<std::unique_ptr<Resampler>> make(const ResampleOptions& options, int from);

  /// Samples that have come in and are not out yet, at most, at the rate `from`. libsoxr works in
  /// blocks, so this is found by passing silence through it.
  static Result<std::int64_t> most_lag(const ResampleOptions& options, int from);

  /// The most samples that put() gives for `count`.
  [[nodiscard]] std::size_t room(std::int64_t count) const;
  /// Takes samples; writes those that they complete to `out`, which has room(samples.count), and
  /// returns their number. `is_last`: no more follow.
  Result<std::size_t> put(const Samples& samples, bool is_last, float* out);

  [[nodiscard]] int from() const { return from_; }
  /// Samples so far, at the new rate.
  [[nodiscard]] std::int64_t given() const { return given_; }

 private:
  struct Deleter {
    void operator()(soxr* s) const { soxr_delete(s); }
  };
  Resampler(const ResampleOptions& options, int from, std::unique_ptr<soxr, Deleter> made)
      : options_(options), from_(from), soxr_(std::move(made)) {}

  ResampleOptions options_;
  int from_;
  std::unique_ptr<soxr, Deleter> soxr_;
  std::int64_t taken_ = 0, given_ = 0;
};

/// Bounds the samples that libsoxr may hold back from earlier pieces and yield later, at a ratio of
/// the new rate to the old one. Measured for all qualities: at most 1.3e3 of the input's, and below
/// 2^15 when the rate decreases.
inline std::size_t held_back(double ratio) {
  return (1 << 15) + static_cast<std::size_t>(1024 * ratio);
}

/// A stage that resamples.
class Resamples {
 public:
  virtual ~Resamples() = default;
  [[nodiscard]] virtual const ResampleOptions& resampling() const = 0;
};

}  // namespace melflow
