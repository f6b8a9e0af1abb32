// The options of decode.
#pragma once

#include <optional>
#include <utility>

#include "pipeline/registry.h"
#include "stages/audio/decoders/sample_reader.h"
#include "stages/length.h"
#include "stages/other_names.h"

namespace melflow {

template <>
struct EnumNames<Downmix> {
  static constexpr std::pair<const char*, Downmix> values[] = {
      {"mean", Downmix::mean}, {"left", Downmix::left}, {"right", Downmix::right}};
};

enum class Truncated { keep, fail };
template <>
struct EnumNames<Truncated> {
  static constexpr std::pair<const char*, Truncated> values[] = {{"keep", Truncated::keep},
                                                                 {"fail", Truncated::fail}};
};

struct DecodeOptions {
  Downmix downmix = Downmix::mean;
  std::optional<Length> fit;
  Bytes block{512 * 1024};
  Truncated truncated = Truncated::keep;
  std::optional<int> ahead;

  void describe(Schema& s) {
    s.other_names(other_names::of_decode());
    s.field(
        "downmix", downmix,
        "how several channels become one; mean: their mean; left, right: the first or second one");
    s.field("fit", fit,
            "length that every recording gets: longer ones are trimmed at the end, shorter ones "
            "padded with silence; not set: recordings keep their length");
    s.field("truncated", truncated,
            "how to treat a recording that ends early or is damaged; keep: its good samples are "
            "used, and the report has a remark; fail: the file fails");
    s.field("block", block,
            "decoded samples that go from stage to stage at a time [bytes]; longer recordings are "
            "divided into such blocks")
        .range(64 * 1024, 1 << 30)
        .tuning();
    s.field(
         "ahead", ahead,
         "blocks of long FLAC files that idle workers may decode before their turn; not set: twice "
         "the number of workers; 0: none")
        .range(0, 1024)
        .tuning();
  }
};

}  // namespace melflow
