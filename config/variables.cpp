#include "config/variables.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "config/document.h"
#include "config/trust.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

constexpr int kMostNested = 16;

bool is_name(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return false;
  return std::ranges::all_of(text,
                             [](unsigned char c) { return c == '_' || std::isalnum(c) != 0; });
}

// Returns the position of the } that closes `text`, which begins after "${"; skips nested ones.
std::size_t closing_brace(std::string_view text) {
  int depth = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && i > 0 && text[i - 1] == '$') ++depth;
    if (text[i] == '}' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// Returns the byte that "0xE9" stands for. ASCII can be written, and is not hidden in this way.
std::optional<char> byte_of(std::string_view inside) {
  unsigned value = 0;
  if (inside.size() != 4 || !inside.starts_with("0x")) return std::nullopt;
  const auto [end, error] =
      std::from_chars(inside.data() + 2, inside.data() + inside.size(), value, 16);
  if (error != std::errc() || end != inside.data() + inside.size() || value < 0x80)
    return std::nullopt;
  return static_cast<char>(value);
}

// Whether the text is a single variable. Its value then counts as unquoted: a variable in braces
// must be quoted, but `files: "${N}"` may still be meant as a number.
bool is_one_variable(std::string_view text) {
  return text.starts_with("${") && closing_brace(text.substr(2)) == text.size() - 3 &&
         !byte_of(text.substr(2, text.size() - 3));
}

}  // namespace

const Assignment* Variables::find(const std::string& name) const {
  const Assignment* found = nullptr;
  for (const Assignment& a : given_)
    if (a.name == name) found = &a;
  return found;
}

std::string Variables::look_up(std::string_view inside, int depth) {
  if (const auto byte = byte_of(inside)) return {*byte};
  const std::size_t split = inside.find(":-");
  const std::string name(inside.substr(0, split));
  if (!is_name(name))
    throw Failure{fmt::format(
        "'${{{}}}' is not a variable; write ${{NAME}} or ${{NAME:-default}}, or ${{0x80}} to "
        "${{0xFF}} for a byte that is not UTF-8",
        excerpt(inside))};
  asked_.insert(name);
  std::optional<std::string> value;
  if (const Assignment* given = find(name); given != nullptr)
    value = given->value;
  else if (const char* set = takes_environment_
                                 ? std::getenv(name.c_str())  // NOLINT(concurrency-mt-unsafe)
                                 : nullptr)
    value = set;
  const bool has_default = split != std::string_view::npos;
  if (has_default && (!value || value->empty()))
    return expand_text(inside.substr(split + 2), depth + 1);
  if (!value && may_be_missing_) return fmt::format("${{{}}}", name);
  if (!value && !takes_environment_)
    throw Failure{
        fmt::format("the variable {}: {}", excerpt(name), Trust::refusal(Effect::variable))};
  if (!value)
    throw Failure{
        fmt::format("the variable {0} is not set; give --var {0}=VALUE, set it in the "
                    "environment, or write a default: ${{{0}:-VALUE}}",
                    excerpt(name))};
  if (value->empty()) empty_ = name;
  return *value;
}

std::string Variables::expand_text(std::string_view text, int depth) {
  if (depth > kMostNested)
    throw Failure{fmt::format("defaults of variables may be nested {} deep; this one is deeper",
                              kMostNested)};
  std::string out;
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    out += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    if (text.starts_with('$')) {
      out += '$';
      text.remove_prefix(1);
    } else if (text.starts_with('{')) {
      text.remove_prefix(1);
      const std::size_t end = closing_brace(text);
      if (end == std::string_view::npos)
        throw Failure{
            "this '${' has no '}' after it; write ${NAME} for a variable, $$ for the character $"};
      out += look_up(text.substr(0, end), depth);
      if (bytes_ + out.size() > kMostExpanded)
        throw Failure{
            fmt::format("with its variables filled in, the configuration has more than {} MiB of "
                        "text here, which is the most",
                        kMostExpanded >> 20)};
      text.remove_prefix(end + 1);
    } else {
      throw Failure{"'$' stands alone; write ${NAME} for a variable, $$ for the character $"};
    }
  }
  return out;
}

void Variables::expand(Value& value, Problems& problems) {
  for (Value& item : value.items()) expand(item, problems);
  for (Value::Entry& e : value.entries()) expand(e.value, problems);
  if (!value.is_scalar() || value.text().find('$') == std::string::npos) return;
  try {
    const bool quoted = value.quoted() && !is_one_variable(value.text());
    empty_.clear();
    std::string text = expand_text(value.text());
    if (text.empty() && !empty_.empty())
      throw Failure{fmt::format(
          "the variable {0} is empty; give it a value, or write ${{{0}:-}} where it may be empty",
          excerpt(empty_))};
    bytes_ += text.size();
    Value expanded;
    if (quoted || !is_null_text(text)) expanded = Value::scalar(std::move(text), {}, quoted);
    expanded.set_mark(value.mark());
    value = std::move(expanded);
  } catch (const Failure& failure) {
    problems.add(value.mark(), failure.reason);
  }
}

void check_unused(const std::vector<Assignment>& given, const std::set<std::string>& asked,
                  Problems& problems) {
  const std::vector<std::string> names(asked.begin(), asked.end());
  for (const Assignment& a : given) {
    if (asked.contains(a.name)) continue;
    std::string advice = did_you_mean(a.name, names);
    if (advice.empty()) advice = "; use it there, or omit --var";
    problems.add({std::make_shared<const std::string>("--var"), 0, 0},
                 fmt::format("{0}: nothing in the configuration uses the variable ${{{0}}}{1}",
                             excerpt(a.name), advice));
  }
}

}  // namespace melflow
