#include "stages/corpus/guess/guess_parts.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stages/corpus/split_name.h"
#include "stages/corpus/text_lines.h"

namespace melflow::guesses {

namespace fs = std::filesystem;

Value text(const std::string& text) { return Value::scalar(text, {}, true); }

Value word(const std::string& word) { return Value::scalar(word); }

Value words(const Texts& words) {
  std::vector<Value> out;
  for (const std::string& one : words) out.push_back(word(one));
  return Value::list(std::move(out));
}

Value map(const Entries& entries) {
  Value out = Value::map({});
  for (const auto& [key, value] : entries) out.set(key, value);
  return out;
}

bool mentions(const Value& value, const std::string& text) {
  const auto is_in = [&](const Value& one) { return mentions(one, text); };
  return (value.is_scalar() && value.text() == text) ||
         std::any_of(value.items().begin(), value.items().end(), is_in) ||
         std::any_of(value.entries().begin(), value.entries().end(),
                     [&](const Value::Entry& e) { return is_in(e.value); });
}

bool has(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

Texts names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    names.insert(entry.path().filename());
  return {names.begin(), names.end()};
}

std::string first_line(const fs::path& list) {
  std::string line;
  TextLines(list.string()).next(line);
  return line;
}

std::string some_of(const Texts& names) {
  constexpr std::size_t kMostNamed = 8;
  const std::size_t named = std::min(names.size(), kMostNamed);
  return fmt::format(
      "{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named), ", "),
      named < names.size() ? fmt::format(" and {} more", names.size() - named) : "");
}

std::string name_of(const std::string& path) { return fs::path(path).filename(); }

void take_columns(const std::vector<Listed>& lists, CorpusGuess& out) {
  Texts all;
  std::map<std::string, Texts> some;  // by column, the lists that have it
  for (const Listed& list : lists)
    for (const std::string& column : list.columns) some[column].push_back(name_of(list.path));
  for (const std::string& column : lists.front().columns)
    if (some[column].size() == lists.size()) all.push_back(column);
  for (const auto& [column, names] : some)
    if (names.size() < lists.size())
      out.remarks.push_back(fmt::format("the column {} is not used: of {} lists {} {} it ({})",
                                        column, lists.size(), names.size(),
                                        names.size() == 1 ? "has" : "have", some_of(names)));
  if (!all.empty()) out.options.emplace_back("columns", words(all));
}

SplitLists lists_by_split(const Texts& lists) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  Texts names;
  for (const std::string& list : lists) {
    const std::string name = name_of(list);
    names.push_back(name.substr(0, name.find('.')));
  }
  if (names.size() < 2) return {};
  const auto ends_differ = [&](const auto& at) {  // the length of what is common, up to a word
    std::size_t common = 0, words = 0;
    for (;; ++common) {
      for (const std::string& name : names)
        if (common >= name.size() || at(name, common) != at(names.front(), common)) return words;
      if (!is_letter(at(names.front(), common))) words = common + 1;
    }
  };
  const std::size_t begin = ends_differ([](auto& name, std::size_t i) { return name[i]; });
  for (std::string& name : names) name.erase(0, begin);
  const std::size_t end =
      ends_differ([](auto& name, std::size_t i) { return name[name.size() - 1 - i]; });
  std::vector<std::pair<std::string, std::string>> out;
  std::set<std::string> splits;
  for (std::size_t i = 0; i < names.size(); ++i) {
    out.emplace_back(names[i].substr(0, names[i].size() - end), lists[i]);
    const std::string& split = out.back().first;
    if (!is_known_split(split) || !split_name_problem(split).empty() ||
        !splits.insert(split).second)
      return {};
  }
  return out;
}

Value map_of(const SplitLists& lists) {
  Entries out;
  for (const auto& [split, list] : lists) out.emplace_back(split, text(list));
  return map(out);
}

Texts named_after_splits(const Texts& lists) {
  Texts out;
  for (const std::string& list : lists) {
    std::string word;
    bool is_one = false;
    for (const char c : name_of(list) + '.') {
      if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
        word += c;
        continue;
      }
      is_one = is_one || is_known_split(word);
      word.clear();
    }
    if (is_one) out.push_back(list);
  }
  return out;
}

}  // namespace melflow::guesses
