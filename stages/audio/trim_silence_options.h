// The options of trim_silence.
#pragma once

#include <optional>
#include <string>

#include "pipeline/registry.h"
#include "stages/length.h"
#include "stages/other_names.h"

namespace melflow {

/// A level as it is written in a pipeline: -40dB, -40. 0 dB is a mean square of 1.
struct Level {
  double db = 0;
  [[nodiscard]] std::optional<double> as_number() const { return db; }
};

template <>
struct OptionType<Level> {
  static std::string name() { return "level (-40dB)"; }
  static std::string parse(const Value& v, Level& out) {
    std::string text = v.is_scalar() ? v.text() : "";
    if (text.ends_with("dB") || text.ends_with("db")) text.resize(text.size() - 2);
    while (text.ends_with(' ')) text.pop_back();
    if (!detail::parse_number(Value::scalar(text), out.db).empty())
      return detail::is_not(v, "a level such as -40dB");
    return {};
  }
  static Value echo(const Level& v) { return Value::scalar(number_text(v.db) + "dB"); }
};

struct TrimSilenceOptions {
  std::optional<Level> threshold;
  std::optional<double> top_db;
  Length frame{2048}, hop{512}, keep{0};
  Length hold = Length::of_seconds(30);

  void describe(Schema& s) {
    s.other_names(other_names::of_trim_silence());
    s.field("threshold", threshold,
            "level of a frame up to which it is silent; 0dB is a mean square of 1, a full sine has "
            "-3dB. This or top_db")
        .range(-200, 0);
    s.field("top_db", top_db,
            "how many dB below the loudest frame of its recording a frame is silent "
            "(librosa.effects.trim). A recording has to be no longer than hold")
        .greater_than(0);
    s.field("frame", frame, "length of a frame, whose mean square is its level");
    s.field("hop", hop,
            "distance from the middle of a frame to that of the next; the first has its middle at "
            "the first sample");
    s.field("keep", keep, "silence that stays before the first sound and after the last one");
    s.field("hold", hold,
            "most audio that waits in memory until it is known what becomes of it. With threshold: "
            "of a silence at the end, no more than that is cut off. With top_db: longer recordings "
            "fail");
  }
};

}  // namespace melflow
