// The options of decode.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/audio/decoders/sample_reader.h"
#include "stages/containers/file_channel.h"
#include "stages/length.h"
#include "stages/other_names.h"

namespace melflow {

/// A channel is written as a word if it has one, so that it always has the same feature setting.
template <>
struct OptionType<Downmix> {
  static constexpr const char* kWords[] = {"mean", "left", "right"};

  static std::string name() { return "mean, left, right, each or number of a channel (1, 2, ...)"; }
  static std::string parse(const Value& v, Downmix& out) {
    if (v.is_scalar() && v.text() == "each") {
      out = {Downmix::kEach};
      return {};
    }
    for (int i = 0; i < static_cast<int>(std::size(kWords)); ++i) {
      if (!v.is_scalar() || v.text() != kWords[i]) continue;
      out = {i};
      return {};
    }
    std::int64_t channel = 0;
    if (!detail::parse_integer(v, channel).empty())
      return detail::is_not(v,
                            "mean, left, right, each or the number of a channel, counted from 1") +
             (v.is_scalar() ? did_you_mean(v.text(), {"mean", "left", "right", "each"}) : "");
    if (channel < 1 || channel > FileChannel::kMost)
      return fmt::format(
          "{} is not the number of a channel; channels are counted from 1, and a file has at most "
          "{}",
          channel, FileChannel::kMost);
    out = {static_cast<int>(channel)};
    return {};
  }
  static Value echo(const Downmix& v) {
    if (v.is_each()) return Value::scalar("each");
    if (v.channel < static_cast<int>(std::size(kWords))) return Value::scalar(kWords[v.channel]);
    return Value::scalar(std::to_string(v.channel));
  }
};

enum class Truncated { keep, tenth, fail };
template <>
struct EnumNames<Truncated> {
  static constexpr std::pair<const char*, Truncated> values[] = {
      {"keep", Truncated::keep}, {"tenth", Truncated::tenth}, {"fail", Truncated::fail}};
};

struct DecodeOptions {
  Downmix downmix;
  std::optional<Length> fit;
  Bytes block{512 * 1024};
  Truncated truncated = Truncated::tenth;
  int timeout = 300;

  void describe(Schema& s) {
    s.other_names(other_names::of_decode());
    s.other_values(other_names::values_of_decode());
    s.field("downmix", downmix,
            "how several channels become one; mean: their mean; left, right: the first or second "
            "one; a number: that channel, from 1, which each file must have; each: every channel "
            "is a result of its own, numbered from 0");
    s.field("fit", fit,
            "length that every recording gets: longer ones are trimmed at the end, shorter ones "
            "padded with silence; not set: recordings keep their length");
    s.field("truncated", truncated,
            "how to treat a recording that ends early or is damaged; keep: its good samples are "
            "used, with a warning; tenth: the same, but it fails where more than a tenth is known "
            "to be lost; fail: it fails");
    s.field("block", block,
            "size of the blocks in which decoded samples go from stage to stage; longer recordings "
            "are divided into such blocks")
        .range(64 * 1024, 1 << 30)
        .tuning();
    s.field("timeout", timeout,
            "longest processor time that a library may take for one block of a file [s], after "
            "which the run is ended; the same command goes on, and leaves the file out if it hangs "
            "again; 0: any time")
        .range(0, 86400)
        .tuning();
  }
};

}  // namespace melflow
