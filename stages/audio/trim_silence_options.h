// The options of trim_silence.
#pragma once

#include <optional>
#include <string>

#include "pipeline/stage/registry.h"
#include "stages/length.h"
#include "stages/other_names.h"

namespace melflow {

/// A level as written in a configuration: -40dB, -40. 0 dB is a mean square of 1.
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
            "a frame at or below this level is silent; 0dB is a mean square of 1 (a full-scale "
            "sine is at -3dB). Set either threshold or top_db")
        .range(-200, 0);
    s.field("top_db", top_db,
            "a frame this many dB or more below the loudest frame of its recording is silent "
            "(librosa.effects.trim). Recordings longer than hold fail")
        .greater_than(0);
    s.field("frame", frame, "length of a frame, whose mean square is its level");
    s.field("hop", hop,
            "distance from the middle of a frame to the middle of the next; the middle of the "
            "first frame is the first sample");
    s.field("keep", keep, "silence that stays before the first sound and after the last one");
    s.field("hold", hold,
            "most audio kept in memory until it is known whether it is silence at an end. With "
            "threshold: at most this much silence is cut off at the end. With top_db: longer "
            "recordings fail");
  }
};

}  // namespace melflow
