// Conditions on a file, all of which must hold, written as
//
//   {duration: "> 15s", label: [dog, cat], path: "*/noisy/*", column.speaker: "!ann"}
//
// Numbers are compared (<, <=, >, >=, a..b, or equal to one of a list). Texts must be one of a
// list, literally or as patterns with *; with ! in front, none of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/options/schema.h"
#include "stages/corpus/path_parts.h"
#include "stages/routing/routing_facts.h"

namespace melflow {

struct ManifestFields;

class Conditions {
 public:
  /// How a condition on a file's peak or on a measure counts while later blocks may still change
  /// its result.
  enum class Undecided { holds, fails };
  /// Returns "" where all hold, else the first that does not, with the fact: "duration is 0.31 s,
  /// not > 1s".
  [[nodiscard]] std::string failing(const KnownFacts& facts, Undecided undecided) const;
  /// Whether all of them are about the file itself.
  [[nodiscard]] bool are_of_content() const;
  /// Whether one of them is about the peak, so that RoutingFacts::note_peak() needs all blocks.
  [[nodiscard]] bool needs_peak() const;
  /// Returns the name of one about a measure of the whole recording, or "".
  [[nodiscard]] std::string needs_measure() const;
  /// Returns advice where one is about a measure that is not among `measured`, or "".
  [[nodiscard]] std::string not_measured(const MeasureSet& measured) const;
  [[nodiscard]] bool is_empty() const { return list_.empty(); }
  /// Returns a warning about a list of exact durations or sizes that was meant as a range, or "".
  [[nodiscard]] std::string remark() const;
  /// Returns the name of one that cannot be judged without samples, or "".
  [[nodiscard]] std::string needs_samples() const;
  /// Returns the name of one about an utterance, which its recording cannot be judged by, or "".
  [[nodiscard]] std::string needs_utterances() const;
  /// Returns advice where one is about a fact that the list of files has for no file, or "".
  [[nodiscard]] std::string not_in(const ManifestFields& fields) const;
  /// The conditions as written.
  [[nodiscard]] const Value& written() const { return written_; }
  /// Returns "" or the error, which says what is allowed.
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
    std::string text;          // the text must be equal
    std::optional<Glob> glob;  // or match this
    bool is_excluded = false;
  };
  struct Condition {
    std::string key, wanted;  // as written, for messages
    Fact fact = Fact::path;
    Fact amounts = Fact::path;  // whose units its numbers have
    std::string name;           // of a column, target or measure
    std::vector<Range> ranges;
    bool or_unknown = false;  // whether it holds where the number is not known
    std::vector<Pattern> patterns;
  };
  static std::string parse_number(const Value& v, Condition& out);
  static std::string parse_text(const Value& v, Condition& out);
  static std::string failing(const Condition& c, const KnownFacts& facts, Undecided undecided);
  static std::string failing_peak(const Condition& c, const KnownFacts& facts, Undecided undecided);

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
