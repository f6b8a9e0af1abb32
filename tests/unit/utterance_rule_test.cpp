// The samples of utterances, as the libraries compute them whose lists they are.
#include "stages/utterance_rule.h"

#include <doctest/doctest.h>

#include <vector>

namespace melflow::test::utterance_rule_test {

TEST_CASE("utterance rules: Lhotse rounds the start and the duration, half a sample up") {
  struct Case {
    double start, duration;
    int rate;
    std::int64_t from, count;
  };
  // By lhotse.utils.compute_num_samples of Lhotse 1.33, of start and duration; several differ by a
  // sample from rounding the end.
  const std::vector<Case> cases{{0.5, 12.345, 44100, 22050, 544415},
                                {0.57, 0.57, 16000, 9120, 9120},
                                {1.00003125, 0.10003125, 16000, 16001, 1601},
                                {0.0, 2.00009375, 16000, 0, 32002},
                                {3.333333333333333, 0.3333333333333333, 44100, 147000, 14700},
                                {7.1, 0.3, 22050, 156555, 6615},
                                {100000.00003125, 5.7, 8000, 800000000, 45600},
                                {40.15910145, 18.36320311, 8000, 321273, 146906},
                                {22.19281757, 10.75676616, 22050, 489352, 237187},
                                {80.04478385, 3.90904058, 22050, 1764987, 86194},
                                {8.67182526, 12.13674508, 44100, 382427, 535230},
                                {2109.97, 23.28002268, 22050, 46524838, 513325}};
  for (const Case& c : cases) {
    CAPTURE(c.start);
    const Manifest::Span span{c.start, end_of_span(c.start, c.duration)};
    const UtteranceSamples got = samples_of(span, c.rate, UtteranceRule::lhotse);
    CHECK(got.from == c.from);
    CHECK(got.to - got.from == c.count);
  }
}

TEST_CASE("utterance rules: Kaldi cuts off, all others round to the nearest sample") {
  // 2.01 * 16000 is 32159.999999999996: int32 start_samp = start * samp_freq in extract-segments.
  const Manifest::Span span{2.01, 4.02};
  const UtteranceSamples kaldi = samples_of(span, 16000, UtteranceRule::kaldi),
                         nearest = samples_of(span, 16000, UtteranceRule::nearest);
  CHECK(kaldi.from == 32159);
  CHECK(kaldi.to == 64319);
  CHECK(nearest.from == 32160);
  CHECK(nearest.to == 64320);
  for (const UtteranceRule rule :
       {UtteranceRule::kaldi, UtteranceRule::nearest, UtteranceRule::lhotse})
    CHECK(samples_of({1.5}, 16000, rule).to == UtteranceSamples::kNoEnd);
}

TEST_CASE("utterance rules: an end made of a duration has no error of the sum") {
  CHECK(end_of_span(15.0, 0.2) == 15.2);
  CHECK(end_of_span(0.1, 0.2) == 0.3);
  CHECK(end_of_span(0, 1.0 / 3) == 1.0 / 3);
  CHECK(duration_of_span({0.1, 0.3}) == 0.2);
}

}  // namespace melflow::test::utterance_rule_test
