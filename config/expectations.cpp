#include "config/expectations.h"

#include <utility>

namespace melflow {
namespace {

using Comparison = Bound::Comparison;

// Longer ones first, since they begin with the shorter ones.
constexpr std::pair<std::string_view, Comparison> kComparisons[] = {{"<=", Comparison::at_most},
                                                                    {">=", Comparison::at_least},
                                                                    {"<", Comparison::less},
                                                                    {">", Comparison::greater}};

// Splits "< 600MiB". Returns the value after the comparison; nullopt without a comparison.
std::optional<Value> value_behind(const Value& v, Bound& out) {
  if (!v.is_scalar() || v.is_null()) return std::nullopt;
  const std::string_view text = v.text();
  for (const auto& [sign, comparison] : kComparisons) {
    if (!text.starts_with(sign)) continue;
    const std::size_t begin = text.find_first_not_of(' ', sign.size());
    if (begin == text.npos) return std::nullopt;
    out.comparison = comparison;
    out.text = text;
    return Value::scalar(std::string(text.substr(begin)));
  }
  return std::nullopt;
}

template <class T, class Out, class F>
std::string parse_bound(const Value& v, const char* what, Out& out, F&& take) {
  std::string bad = detail::is_not(v, what);
  Out bound;
  const std::optional<Value> value = value_behind(v, bound);
  T parsed{};
  if (!value || !OptionType<T>::parse(*value, parsed).empty()) return bad;
  if (!take(parsed, bound)) return bad;
  out = std::move(bound);
  return {};
}

}  // namespace

bool Bound::is_met_by(double value) const {
  switch (comparison) {
    case Comparison::less:
      return value < limit;
    case Comparison::at_most:
      return value <= limit;
    case Comparison::greater:
      return value > limit;
    case Comparison::at_least:
      return value >= limit;
  }
  return false;
}

std::string OptionType<NumberBound>::parse(const Value& v, NumberBound& out) {
  return parse_bound<double>(v, R"(a bound such as ">= 20000" or "< 3.5", in quotes)", out,
                             [](double number, NumberBound& bound) {
                               bound.limit = number;
                               return number >= 0;
                             });
}

std::string OptionType<FigureBounds>::parse(const Value& v, FigureBounds& out) {
  if (!v.is_map()) return detail::is_not(v, R"(a map such as {edges.mel.mean_depth: "> 4"})");
  FigureBounds read;
  for (const Value::Entry& e : v.entries()) {
    auto& [place, bound] = read.list.emplace_back(e.key, NumberBound{});
    if (std::string why = OptionType<NumberBound>::parse(e.value, bound); !why.empty())
      return excerpt(place) + ": " + why;
  }
  out = std::move(read);
  return {};
}

Value OptionType<FigureBounds>::echo(const FigureBounds& v) {
  Value out = Value::map({});
  for (const auto& [place, bound] : v.list) out.set(place, OptionType<NumberBound>::echo(bound));
  return out;
}

std::string OptionType<SizeBound>::parse(const Value& v, SizeBound& out) {
  return parse_bound<Bytes>(v, "a bound such as \"< 600MiB\", in quotes", out,
                            [](Bytes bytes, SizeBound& bound) {
                              bound.limit = static_cast<double>(bytes.count);
                              return true;
                            });
}

std::string OptionType<CountBound>::parse(const Value& v, CountBound& out) {
  return parse_bound<CountOrShare>(
      v, R"(a bound such as "< 0.1%" or "<= 10", in quotes)", out,
      [](const CountOrShare& parsed, CountBound& bound) {
        bound.is_share = parsed.share.has_value();
        bound.limit = bound.is_share ? *parsed.share : static_cast<double>(*parsed.count);
        return true;
      });
}

namespace {
constexpr OtherName kOtherNames[] = {
    {"rows", "", "",
     "it is a speed that is expected here, as rows_per_second; a number of rows is expected by a "
     "test (tests: expect.outputs)"},
};
}  // namespace

void RecordingExpectations::describe(Schema& s) {
  s.field("profile", profile,
          "conditions by the use of the recordings, as in docs/quality.md: any, asr, tts, speaker "
          "or music")
      .tuning();
  s.field("where", where,
          "further conditions, or others in place of the profile's, as those of filter: "
          "{quality.snr: \"> 20dB\"}; null takes one of the profile out")
      .tuning();
  s.field("faulty", faulty,
          "recordings that do not meet one of the conditions, their number or their share of those "
          "that are ok; not set: none")
      .tuning();
  s.field("across_splits", across_splits,
          "recordings that sound like one of another split, by the rows of a stage fingerprint "
          "(docs/duplicates.md): their number, or their share of those that are ok")
      .tuning();
}

void Expectations::describe(Schema& s) {
  s.other_names(kOtherNames);
  s.field("files_per_second", files_per_second, "files processed per second of the whole run")
      .tuning();
  s.field("rows_per_second", rows_per_second, "rows taken by the sinks per second of the run")
      .tuning();
  s.field("seconds", seconds, "time from start to end [s]").tuning();
  s.field("peak_memory", peak_memory, "most resident memory of the process").tuning();
  s.field("failed", failed, "files that failed, their number or their share of all").tuning();
  s.field("skipped", skipped, "files that were skipped, likewise").tuning();
  s.field("figures", figures,
          "any numbers of the JSON report, each by its place there, where elements of a list go by "
          "their name: edges.mel.mean_depth, stages.read.busy_share. A figure that the report "
          "lacks is not met")
      .tuning();
  s.group("recordings", recordings,
          "what recordings of outputs with a stage quality should be like");
}

}  // namespace melflow
