// Conditions on a file, all of which have to hold, as
//
//   {duration: "> 15s", label: [dog, cat], path: "*/noisy/*", column.speaker: "!ann"}
//
// Numbers are compared (<, <=, >, >=, a..b, or equal to one of a list), texts are one of a list, as
// they are or as patterns with *, and with ! in front none of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/options/schema.h"
#include "stages/corpus/path_parts.h"
#include "stages/routing/file_facts.h"

namespace melflow {

struct ManifestFields;

class Conditions {
 public:
  /// What conditions there are, for the help of options.
  static constexpr const char* kHelp =
      "Conditions are a map such as {duration: 1s..15s, label: [dog, cat], path: \"*/noisy/*\"}. "
      "path, label, split, column.NAME: a text, a pattern with *, or a list of which one has to "
      "match; \"!dog\", or a list of such: none may match. size, duration, rate, channels, peak, "
      "target.NAME: a comparison (\"> 15s\", \"<= 15s\"), a range with both its ends "
      "(500ms..2min), an exact number, or a list of these of which one has to hold; without a unit "
      "size is in bytes, duration in seconds, rate in Hz. duration is what the header of the file "
      "says, which for a truncated recording can be more than there is; where the header does not "
      "say it, as that of an MP3 without a count of frames, only that of a file of one block is "
      "known, and others are excluded (segment.min_length and max_length go by what is there). "
      "peak, which needs a waveform, is the largest absolute value of a sample, as a fraction of "
      "full scale (\"< 0.999\") or in dB (\"> -60dB\")";

  /// How one on the peak of a file is taken while further blocks of it may change what it says.
  enum class Undecided { holds, fails };
  /// "" where all hold, else the first that does not and what is so: "duration is 0.31 s, not >
  /// 1s".
  [[nodiscard]] std::string failing(const FileFacts& facts, Undecided undecided) const;
  /// All of them are about the file itself.
  [[nodiscard]] bool are_of_content() const;
  /// One of them is about the peak: FileFacts::note_peak() has to be told of the blocks.
  [[nodiscard]] bool needs_peak() const;
  [[nodiscard]] bool is_empty() const { return list_.empty(); }
  /// A warning about a list of exact durations or sizes, which was meant as a range; "" for none.
  [[nodiscard]] std::string remark() const;
  /// One of them cannot be told where there are no samples: its name, else "".
  [[nodiscard]] std::string needs_samples() const;
  /// One of them is about an utterance, and cannot be told of its recording: its name, else "".
  [[nodiscard]] std::string needs_utterances() const;
  /// One of them is about what the list of files does not say of any file: what to do, else "".
  [[nodiscard]] std::string not_in(const ManifestFields& fields) const;
  /// As written.
  [[nodiscard]] const Value& written() const { return written_; }
  /// "" or what is wrong; an error says what is allowed.
  static std::string parse(const Value& v, Conditions& out);

 private:
  struct Range {
    double low = 0, high = 0;
    bool with_low = true, with_high = true;
    [[nodiscard]] bool has(double number) const {
      return (with_low ? number >= low : number > low) && !is_below(number);
    }
    [[nodiscard]] bool is_below(double number) const {
      return with_high ? number > high : number >= high;
    }
  };
  struct Pattern {
    std::string text;          // to be equal
    std::optional<Glob> glob;  // or this
    bool is_excluded = false;
  };
  struct Condition {
    std::string key, wanted;  // as written, for messages
    Fact fact = Fact::path;
    std::string name;  // of a column or target
    std::vector<Range> ranges;
    std::vector<Pattern> patterns;
  };
  static std::string parse_number(const Value& v, Condition& out);
  static std::string parse_text(const Value& v, Condition& out);
  static std::string failing(const Condition& c, const FileFacts& facts, Undecided undecided);
  static std::string failing_peak(const Condition& c, const FileFacts& facts, Undecided undecided);

  Value written_ = Value::map({});
  std::vector<Condition> list_;
};

template <>
struct OptionType<Conditions> {
  static std::string name() { return "conditions ({duration: \"> 15s\"})"; }
  static std::string parse(const Value& v, Conditions& out) { return Conditions::parse(v, out); }
  static Value echo(const Conditions& v) { return v.written(); }
};

}  // namespace melflow
