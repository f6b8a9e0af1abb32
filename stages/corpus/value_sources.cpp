#include "stages/corpus/value_sources.h"

#include <algorithm>

#include <fmt/format.h>

#include "stages/corpus/name_rule.h"

namespace melflow {
std::string OptionType<LabelSource>::parse(const Value& v, LabelSource& out) {
  LabelSource read;
  if (std::string why = OptionType<std::string>::parse(v, read.rule); !why.empty()) return why;
  if (OptionType<Labels>::parse(v, read.kind).empty())
    read.rule.clear();
  else
    read.kind = NameRule::is_column(read.rule) ? Labels::column : Labels::rule;
  out = std::move(read);
  return {};
}

Value OptionType<LabelSource>::echo(const LabelSource& v) {
  return v.rule.empty() ? OptionType<Labels>::echo(v.kind) : OptionType<std::string>::echo(v.rule);
}

std::vector<std::string> TextColumns::names() const {
  std::vector<std::string> out;
  for (const Column& column : list) out.push_back(column.name);
  return out;
}

bool TextColumns::read_table() const {
  return std::any_of(list.begin(), list.end(),
                     [](const Column& column) { return NameRule::is_column(column.rule); });
}

std::string OptionType<TextColumns>::parse(const Value& v, TextColumns& out) {
  TextColumns read;
  const auto add = [&read](const std::string* name, const Value& value) {
    TextColumns::Column column;
    std::string why = OptionType<std::string>::parse(value, column.rule);
    column.name = name != nullptr ? *name : column.rule;
    if (why.empty()) read.list.push_back(std::move(column));
    return why;
  };
  if (v.is_map()) {
    for (const Value::Entry& e : v.entries())
      if (std::string why = add(&e.key, e.value); !why.empty()) return excerpt(e.key) + ": " + why;
  } else if (v.is_list()) {
    for (const Value& item : v.items())
      if (std::string why = add(nullptr, item); !why.empty()) return why;
  } else if (std::string why = add(nullptr, v); !why.empty()) {
    return why;
  }
  out = std::move(read);
  return {};
}

Value OptionType<TextColumns>::echo(const TextColumns& v) {
  const auto text = OptionType<std::string>::echo;
  if (std::all_of(v.list.begin(), v.list.end(), [](const auto& c) { return c.name == c.rule; }))
    return OptionType<std::vector<std::string>>::echo(v.names());
  Value out = Value::map({});
  for (const auto& [name, rule] : v.list) out.set(name, text(rule));
  return out;
}

}  // namespace melflow
