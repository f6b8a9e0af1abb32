// The rows of an option table as fields of a stage's schema.
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <variant>

#include "pipeline/options/schema.h"
#include "stages/features/mel/option_table.h"

namespace melflow {

/// Names the values of an enumeration that option tables know.
template <class E>
requires requires(E e) { names(e); }
struct EnumNames<E> {
  static constexpr auto values = [] {
    constexpr auto texts = names(E{});
    std::array<std::pair<const char*, E>, texts.size()> out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = {texts[i].data(), static_cast<E>(i)};
    return out;
  }();
};

/// Sets the range that the table has for the field.
inline void set_range(Field& field, const OptionRange& range) {
  if (std::isfinite(range.lowest))
    range.excludes_lowest ? field.greater_than(range.lowest) : field.at_least(range.lowest);
  if (std::isfinite(range.highest)) field.highest = range.highest;
}

/// Adds a field for every row of the options' table.
template <class Options>
void add_fields(Schema& s, Options& options) {
  for (const OptionEntry<Options>& row : option_table<Options>()) {
    Field& field = std::visit(
        [&](auto m) -> Field& { return s.field(std::string(row.name), options.*m, row.text()); },
        row.member);
    set_range(field, row.range);
    if (row.needs.are_met != nullptr)
      field.used_with(std::string(row.needs.what),
                      [&options, met = row.needs.are_met] { return met(options); });
  }
}

/// The settings that an output records of canonical options.
template <class Options>
Value recorded(Options options) {
  Schema s;
  add_fields(s, options);
  const Value all = s.echo();
  Value out = Value::map({});
  for (const OptionEntry<Options>& row : option_table<Options>())
    if (row.counts(options)) out.set(std::string(row.name), *all.find(std::string(row.name)));
  return out;
}

}  // namespace melflow
