// The expectations of a configuration for its run (`expect:`), checked after the run; the framework
// ignores them. A bound is a comparison and a value: "< 600MiB", ">= 20000", "<= 0.1%".
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/options/schema.h"
#include "pipeline/plan/plan.h"

namespace melflow {

struct Bound {
  enum class Comparison { less, at_most, greater, at_least };
  Comparison comparison = Comparison::at_least;
  double limit = 0;
  std::string text;  ///< as written

  [[nodiscard]] bool is_met_by(double value) const;
};
/// A bound on a number.
struct NumberBound : Bound {};
/// A bound on bytes.
struct SizeBound : Bound {};
/// A bound on a number of files, or on a share of all.
struct CountBound : Bound {
  bool is_share = false;  ///< then `limit` is 0 to 1
};

/// Bounds on numbers of the JSON report, by their paths in it ("edges.mel.mean_depth").
struct FigureBounds {
  std::vector<std::pair<std::string, NumberBound>> list;
};

/// What recordings are expected to be like. The framework knows no conditions: who judges the
/// recordings of an output reads them, as those of the stage `filter`.
struct RecordingExpectations {
  std::string profile;  ///< a named set of conditions; "" for none
  ValueMap where;       ///< further ones, by what they are about; null takes one of the profile out
  std::optional<CountBound> faulty;  ///< recordings that do not meet one of them
  /// Recordings that sound like one of another split, by their fingerprints.
  std::optional<CountBound> across_splits;

  /// Whether recordings are judged by conditions: always, unless only across_splits is set.
  [[nodiscard]] bool has_conditions() const {
    return !profile.empty() || !where.map.entries().empty() || faulty || !across_splits;
  }
  void describe(Schema& s);
};

struct Expectations {
  std::optional<NumberBound> files_per_second, rows_per_second, seconds;
  std::optional<SizeBound> peak_memory;
  std::optional<CountBound> failed, skipped;
  FigureBounds figures;
  std::optional<RecordingExpectations> recordings;

  void describe(Schema& s);
};

template <>
struct OptionType<NumberBound> {
  static std::string name() { return "bound (\">= 20000\")"; }
  static std::string parse(const Value& v, NumberBound& out);
  static Value echo(const NumberBound& v) { return Value::scalar(v.text, {}, true); }
};
template <>
struct OptionType<FigureBounds> {
  static std::string name() { return "bounds ({edges.mel.mean_depth: \"> 4\"})"; }
  static std::string parse(const Value& v, FigureBounds& out);
  static Value echo(const FigureBounds& v);
};
template <>
struct OptionType<SizeBound> {
  static std::string name() { return "bound of a size (\"< 600MiB\")"; }
  static std::string parse(const Value& v, SizeBound& out);
  static Value echo(const SizeBound& v) { return Value::scalar(v.text, {}, true); }
};
template <>
struct OptionType<CountBound> {
  static std::string name() { return "bound of a count or share (\"< 0.1%\")"; }
  static std::string parse(const Value& v, CountBound& out);
  static Value echo(const CountBound& v) { return Value::scalar(v.text, {}, true); }
};

}  // namespace melflow
