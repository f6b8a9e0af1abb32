#include "stages/model_files/class_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "pipeline/base/text.h"
#include "pipeline/options/option_type.h"

namespace melflow {
namespace {

constexpr std::size_t kMostNumbers = 65536;  // of a list

KeyType type_of(std::string_view standard) {
  if (standard == "true" || standard == "false") return KeyType::truth;
  if (standard.starts_with('\'')) return KeyType::text;
  return standard.find_first_of(".e") == standard.npos ? KeyType::integer : KeyType::number;
}

KeyType type_named(std::string_view name) {
  constexpr std::pair<std::string_view, KeyType> kTypes[] = {
      {"int", KeyType::integer}, {"num", KeyType::number}, {"bool", KeyType::truth},
      {"text", KeyType::text},   {"list", KeyType::list},  {"lists", KeyType::lists},
      {"any", KeyType::any}};
  for (const auto& [text, type] : kTypes)
    if (text == name) return type;
  throw std::logic_error("there is no type of keys " + std::string(name));
}

// Keys that say how a batch is padded, of every class of Transformers.
constexpr std::pair<std::string_view, std::string_view> kOfBatches[] = {
    {"feature_size", "int"},
    {"padding_value", "num"},
    {"padding_side", "text"},
    {"return_attention_mask", "bool?"}};

std::optional<bool> truth_of(const Value& v) {
  if (!v.is_scalar() || v.quoted()) return std::nullopt;
  std::string text = v.text();
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (text == "true" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "no" || text == "off") return false;
  return std::nullopt;
}

// Adds the numbers of lists within lists. Returns "" or what is wrong.
std::string add_numbers(const Value& v, Term::List& out) {
  if (out.size() >= kMostNumbers) return fmt::format("has more than {} numbers", kMostNumbers);
  if (!v.is_list()) {
    double number = 0;
    std::string why = detail::parse_number(v, number);
    if (why.empty()) out.push_back(number);
    return why;
  }
  for (const Value& item : v.items())
    if (std::string why = add_numbers(item, out); !why.empty()) return why;
  return {};
}

}  // namespace

std::string_view cut(std::string_view& rest, std::string_view mark) {
  const std::size_t at = std::min(rest.find(mark), rest.size());
  const std::string_view out = rest.substr(0, at);
  rest.remove_prefix(std::min(at + mark.size(), rest.size()));
  return out;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty())
    if (const std::string_view word = cut(text, " "); !word.empty()) out.push_back(word);
  return out;
}

std::vector<KeyRow> rows_of(const FrontEndClass& of) {
  std::vector<KeyRow> out;
  for (const bool is_of_call : {false, true})
    for (std::string_view word : words(is_of_call ? of.call : of.keys)) {
      KeyRow& row = out.emplace_back();
      row.is_of_call = is_of_call;
      std::string_view head = cut(word, "=");
      row.is_fixed = word.starts_with('=');
      row.standard = row.is_fixed ? word.substr(1) : word;
      row.name = cut(head, ":");
      row.may_be_null = head.ends_with('?');
      row.type = head.empty() ? type_of(row.standard)
                              : type_named(head.substr(0, head.size() - (row.may_be_null ? 1 : 0)));
    }
  return out;
}

KeyRow ignored_key(std::string_view word) {
  KeyRow out;
  out.name = cut(word, ":");
  for (const auto& [name, type] : kOfBatches)
    if (out.name == name && word.empty()) word = type;
  out.has_type = !word.empty();
  out.may_be_null = word.ends_with('?');
  if (out.has_type) out.type = type_named(word.substr(0, word.size() - (out.may_be_null ? 1 : 0)));
  return out;
}

std::string read_key(const KeyRow& row, const Value& v, Term& out) {
  if (row.may_be_null && v.is_null()) return out = Term(), "";
  switch (row.type) {
    case KeyType::integer: {
      std::int64_t number = 0;
      std::string why = detail::parse_integer(v, number);
      if (why.empty() && std::abs(number) > 1'000'000'000'000)
        why = excerpt(v.text()) + " is too large";
      if (why.empty()) out = static_cast<double>(number);
      return why;
    }
    case KeyType::number: {
      double number = 0;
      std::string why = detail::parse_number(v, number);
      if (why.empty()) out = number;
      return why;
    }
    case KeyType::any: {
      double number = 0;
      if (!v.is_scalar()) return detail::is_not(v, "a number or a text");
      if (const std::optional<bool> truth = truth_of(v))
        out = *truth;
      else if (detail::parse_number(v, number).empty())
        out = number;
      else
        out = v.text();
      return {};
    }
    case KeyType::truth: {
      const std::optional<bool> truth = truth_of(v);
      if (!truth) return detail::is_not(v, "true or false");
      out = *truth;
      return {};
    }
    case KeyType::text: {
      double number = 0;
      const bool is_other =
          !v.quoted() && (truth_of(v) || v.is_null() || detail::parse_number(v, number).empty());
      if (!v.is_scalar() || is_other) return detail::is_not(v, "a text");
      out = v.text();
      return {};
    }
    case KeyType::list:
    case KeyType::lists: {
      Term::List numbers;
      if (!v.is_list() || (row.type == KeyType::list &&
                           std::any_of(v.items().begin(), v.items().end(),
                                       [](const Value& item) { return item.is_list(); })))
        return detail::is_not(v, "a list of numbers");
      std::string why = add_numbers(v, numbers);
      if (why.empty()) out = std::move(numbers);
      return why;
    }
  }
  return {};
}

}  // namespace melflow
