#include "stages/corpus/label_source.h"

#include <optional>

#include "stages/corpus/name_rule.h"

namespace melflow {

std::string OptionType<LabelSource>::parse(const Value& v, LabelSource& out) {
  LabelSource read;
  if (std::string why = OptionType<std::string>::parse(v, read.rule); !why.empty()) return why;
  if (OptionType<Labels>::parse(v, read.kind).empty())
    read.rule.clear();
  else
    read.kind = NameRule::is_pattern(read.rule) ? Labels::pattern : Labels::column;
  out = std::move(read);
  return {};
}

Value OptionType<LabelSource>::echo(const LabelSource& v) {
  return v.rule.empty() ? OptionType<Labels>::echo(v.kind) : OptionType<std::string>::echo(v.rule);
}

}  // namespace melflow
