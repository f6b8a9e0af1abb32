// What a configuration expects of its run (`expect:`), checked at the end of it; the framework does
// not look at it. A bound is a comparison and a value: "< 600MiB", ">= 20000", "<= 0.1%".
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
  std::string text;  ///< as it was written

  [[nodiscard]] bool is_met_by(double value) const;
};
/// Of a number.
struct NumberBound : Bound {};
/// Of bytes.
struct SizeBound : Bound {};
/// Of a number of files, or of a share of all.
struct CountBound : Bound {
  bool is_share = false;  ///< then `limit` is 0 to 1
};

/// Of numbers of the JSON report, each by its place there ("edges.mel.mean_depth").
struct FigureBounds {
  std::vector<std::pair<std::string, NumberBound>> list;
};

struct Expectations {
  std::optional<NumberBound> files_per_second, rows_per_second, seconds;
  std::optional<SizeBound> peak_memory;
  std::optional<CountBound> failed, skipped;
  FigureBounds figures;

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
