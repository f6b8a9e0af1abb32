// Which samples of a recording belong to an utterance.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include "pipeline/options/option_type.h"
#include "stages/manifest.h"

namespace melflow {

/// How times become samples, t at rate r:
///   nearest: start and end, each rounded to the nearest sample
///   lhotse: the start so, and then as many samples as the duration has, half a sample rounded up
///     (lhotse.utils.compute_num_samples, of offset and duration)
///   kaldi: start and end cut off to whole samples, as by extract-segments, which also refuses what
///     is too short and what has several channels
enum class UtteranceRule : std::uint8_t { nearest, lhotse, kaldi };
template <>
struct EnumNames<UtteranceRule> {
  static constexpr std::pair<const char*, UtteranceRule> values[] = {
      {"nearest", UtteranceRule::nearest},
      {"lhotse", UtteranceRule::lhotse},
      {"kaldi", UtteranceRule::kaldi}};
};

/// Samples [from, to) of a recording.
struct UtteranceSamples {
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
  std::int64_t from = 0, to = kNoEnd;
};

/// `rate`: samples per unit of the span.
UtteranceSamples samples_of(const Manifest::Span& span, double rate, UtteranceRule rule);

/// The end of an utterance that is given by its duration [s], without the error of the sum: 15.2
/// rather than 15.199999999999999; and the duration, from the end.
double end_of_span(double start, double duration);
double duration_of_span(const Manifest::Span& span);

}  // namespace melflow
