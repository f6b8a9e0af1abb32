#include "stages/corpus/span_columns.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"

namespace melflow {

SpanColumns::SpanColumns(const UtteranceColumns& options, TableReader& table, std::string path)
    : options_(options), path_(std::move(path)) {
  const auto column = [&](const std::string& name, const char* option) {
    const int c = table.find_column(name);
    if (c < 0)
      throw RunError(fmt::format("{}: there is no column '{}', which utterances.{} {}", path_,
                                 excerpt(name), option,
                                 option == std::string("start") || options.end || options.duration
                                     ? "asks for; where each line is a whole recording, omit "
                                       "utterances"
                                     : "is by default; name the column of the end, or of the "
                                       "duration (utterances: {start: ..., duration: ...})"));
    return c;
  };
  start_ = column(options.start, "start");
  end_ = options.duration ? column(*options.duration, "duration")
                          : column(options.end.value_or("end"), "end");
}

double SpanColumns::number(const TableReader& table, int column) const {
  const std::string& text = table.cell(column);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || !std::isfinite(value) || value < 0)
    throw BadLine(fmt::format("{}:{}: {} is '{}', which is not a number from 0 up", path_,
                              table.line(), table.columns()[static_cast<std::size_t>(column)],
                              excerpt(text)));
  constexpr double kMost = 1e12;
  if (value > kMost)
    throw BadLine(fmt::format("{}:{}: {} is {}, more than a recording can have", path_,
                              table.line(), table.columns()[static_cast<std::size_t>(column)],
                              excerpt(text)));
  return value;
}

Manifest::Span SpanColumns::take(const TableReader& table) const {
  Manifest::Span span;
  if (!table.cell(start_).empty()) span.start = number(table, start_);
  if (table.cell(end_).empty()) return span;
  span.end = number(table, end_);
  // Without the last digits of a sum: 15.2, and not 15.199999999999999.
  if (options_.duration) span.end = std::round((span.start + span.end) * 1e9) / 1e9;
  if (span.end <= span.start)
    throw BadLine(fmt::format(
        "{}:{}: the utterance ends at {}, and starts at {}; an empty {} is "
        "the end of the recording",
        path_, table.line(), span.end, span.start, options_.duration ? "duration" : "end"));
  return span;
}

}  // namespace melflow
