#include "stages/utterance_rule.h"

#include <algorithm>
#include <cmath>

namespace melflow {
namespace {

// Rounds to a whole nanosecond where the number differs from it by no more than a sum or
// difference of times up to `largest` may.
double without_error(double seconds, double largest) {
  constexpr double kPerSecond = 1e9;
  const double rounded = std::round(seconds * kPerSecond) / kPerSecond;
  const double error = 4 * std::numeric_limits<double>::epsilon() * std::max(largest, 1.0);
  return std::abs(rounded - seconds) <= error ? rounded : seconds;
}

// Lhotse rounds to 8 decimals first, so that 0.5 made of inexact numbers is rounded up, too.
std::int64_t half_up(double samples) {
  constexpr double kDecimals = 1e8, kExact = 9e7;  // beyond kExact, doubles have fewer decimals
  if (samples < kExact) samples = std::round(samples * kDecimals) / kDecimals;
  return std::llround(samples);
}

}  // namespace

UtteranceSamples samples_of(const Manifest::Span& span, double rate, UtteranceRule rule) {
  UtteranceSamples out;
  switch (rule) {
    case UtteranceRule::nearest:
      out.from = std::llround(span.start * rate);
      if (span.has_end()) out.to = std::llround(span.end * rate);
      break;
    case UtteranceRule::lhotse:
      out.from = half_up(span.start * rate);
      if (span.has_end()) out.to = out.from + half_up(duration_of_span(span) * rate);
      break;
    case UtteranceRule::kaldi:
      out.from = static_cast<std::int64_t>(span.start * rate);
      if (span.has_end()) out.to = static_cast<std::int64_t>(span.end * rate);
      break;
  }
  return out;
}

double end_of_span(double start, double duration) {
  return without_error(start + duration, start + duration);
}

double duration_of_span(const Manifest::Span& span) {
  return without_error(span.end - span.start, span.end);
}

}  // namespace melflow
