// Options of a stage as written in C++. They become the Value that YAML would yield:
//
//   OptionList{{"root", "texts"}, {"min_db", -40}, {"include", {"**/*.txt", "**/*.md"}}}
#pragma once

#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/value.h"

namespace melflow {

struct WrittenOption {
  WrittenOption(std::string name, Value given) : key(std::move(name)), value(std::move(given)) {}
  /// A text is read like a plain scalar of YAML: "25ms", "16kHz", "auto", a path.
  WrittenOption(std::string name, const char* text)
      : WrittenOption(std::move(name), std::string(text)) {}
  WrittenOption(std::string name, std::string text)
      : key(std::move(name)), value(Value::scalar(std::move(text))) {}
  template <class T>
  requires std::integral<T> || std::floating_point<T> WrittenOption(std::string name, T number)
      : WrittenOption(std::move(name), fmt::format("{}", number)) {}
  WrittenOption(std::string name, const std::vector<std::string>& texts) : key(std::move(name)) {
    std::vector<Value> items;
    items.reserve(texts.size());
    for (const std::string& text : texts) items.push_back(Value::scalar(text));
    value = Value::list(std::move(items));
  }

  std::string key;
  Value value;
};
using OptionList = std::vector<WrittenOption>;

/// Makes a map of the options; the last of several with the same key counts.
inline Value map_of(const OptionList& options) {
  Value map = Value::map({});
  for (const WrittenOption& o : options) map.set(o.key, o.value);
  return map;
}

}  // namespace melflow
