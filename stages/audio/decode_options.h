// What a user says of decoding.
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
    s.field("downmix", downmix, "how several channels become one");
    s.field("fit", fit, "pad with silence or trim every recording to this length");
    s.field("truncated", truncated,
            "a recording that ends early or is damaged on the way: keep what is there, with a "
            "remark, or fail the file");
    s.field("block", block, "longest piece of a recording handled at once")
        .range(64 * 1024, 1 << 30)
        .tuning();
    s.field(
         "ahead", ahead,
         "blocks of a long FLAC file that workers with nothing else to do may decode before their "
         "turn; without it twice the number of workers")
        .range(0, 1024)
        .tuning();
  }
};

}  // namespace melflow
