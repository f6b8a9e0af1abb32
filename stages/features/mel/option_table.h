// option_table.h - tables of options: their names, texts and ranges, and how values are written as
// text.
//
// In:  an options struct with a table, option_table<Options>(), and the names of its enumerations.
// Out: options read from text, and the settings that an output records of them.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace melflow {

template <class... Text>
constexpr std::array<std::string_view, sizeof...(Text)> choice_names(Text... names) {
  return {names...};
}

template <class Choice>
constexpr std::string_view name_of(Choice choice) {
  return names(choice)[static_cast<std::size_t>(choice)];
}

// The range of a number, or of each number in a list. No range includes NaN.
struct OptionRange {
  double lowest = -std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<double>::infinity();
  bool excludes_lowest = false;

  [[nodiscard]] bool has(double value) const {
    return (excludes_lowest ? value > lowest : value >= lowest) && value <= highest;
  }
};

constexpr OptionRange from_to(double lowest, double highest = OptionRange{}.highest) {
  return {lowest, highest};
}
constexpr OptionRange above_to(double lowest, double highest) { return {lowest, highest, true}; }
constexpr OptionRange kAnyNumber{};

// A problem of the options: the key, and a sentence with the value and what is allowed.
struct OptionProblem {
  std::string option;
  std::string message;

  // The sentence without the key, for contexts that name it already.
  [[nodiscard]] std::string without_name() const {
    return message.starts_with(option + " ") ? message.substr(option.size() + 1) : message;
  }
};

template <class Options>
struct OptionEntry {
  // Conditions on other options without which this one has no effect: as text, and as a test.
  struct Needs {
    std::string_view what;
    bool (*are_met)(const Options&) = nullptr;  // null: it always has an effect
  };

  // When the values need the whole recording, so that no row is final before its end, and what can
  // be set instead where rows are wanted earlier (a stream); null: never.
  struct Whole {
    bool (*is_needed)(const Options&) = nullptr;
    std::string_view instead;
  };

  std::string_view name;
  typename Options::Member member;  // a variant of pointers to members
  std::string_view what;
  std::string_view unit;    // "" for none
  std::string_view effect;  // the effect of its values, and what applies if it is not set
  OptionRange range = {};
  Needs needs = {};
  // Whether the output records the option although it has an effect; null: always. An option at the
  // value that older outputs imply is omitted, so that they keep their fingerprint.
  bool (*is_recorded)(const Options&) = nullptr;
  Whole whole = {};

  // "length of the analysis window [samples]; not set: n_fft"
  [[nodiscard]] std::string text() const {
    std::string out(what);
    if (!unit.empty()) out.append(" [").append(unit).append("]");
    if (!effect.empty()) out.append("; ").append(effect);
    return out;
  }
  // Whether the canonical form of `options` records this option.
  [[nodiscard]] bool counts(const Options& options) const {
    return (needs.are_met == nullptr || needs.are_met(options)) &&
           (is_recorded == nullptr || is_recorded(options));
  }
};

// One row for each option, in the order of the documentation.
template <class Options>
std::span<const OptionEntry<Options>> option_table();

// Returns the shortest text of the same number: 1048576, 1e-06.
template <class Number>
std::string shortest(Number value) {
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

// The values of an option: "from 1 to 1048576 samples", "hann, hamming or boxcar".
template <class Options>
std::string allowed(const OptionEntry<Options>& row) {
  return std::visit(
      [&row](auto member) -> std::string {
        using T = std::decay_t<decltype(std::declval<Options>().*member)>;
        if constexpr (std::is_enum_v<T>) {
          std::string out;
          const auto all = names(T{});
          for (std::size_t i = 0; i < all.size(); ++i)
            out.append(i == 0 ? "" : i + 1 == all.size() ? " or " : ", ").append(all[i]);
          return out;
        } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::optional<bool>>) {
          return "true or false";
        } else {
          const auto& [lowest, highest, excludes_lowest] = row.range;
          std::string out = "from " + shortest(lowest) + " to " + shortest(highest);
          if (excludes_lowest)
            out = "more than " + shortest(lowest) + " and at most " + shortest(highest);
          if (highest == OptionRange{}.highest) out = "at least " + shortest(lowest);
          if (lowest == OptionRange{}.lowest) out = "a number";
          return row.unit.empty() ? out : out.append(" ").append(row.unit);
        }
      },
      row.member);
}

// Sets an option to a value as in YAML; null is "null" or "none". Returns what is wrong with it, or
// "".
template <class T>
std::string read_option(std::string_view text, T& out) {
  if constexpr (std::is_enum_v<T>) {
    const auto all = names(T{});
    const auto at = std::find(all.begin(), all.end(), text);
    if (at == all.end()) return "is none of its values";
    out = static_cast<T>(at - all.begin());
    return {};
  } else if constexpr (std::is_same_v<T, bool>) {
    out = text == "true";
    return out || text == "false" ? "" : "is not true or false";
  } else if constexpr (std::is_arithmetic_v<T>) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() ? "" : "is no number";
  } else if constexpr (requires { out.is_max; }) {
    out = {1, text == "max"};
    return out.is_max ? "" : read_option(text, out.value);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    return read_option(text, out.emplace_back());
  } else if constexpr (requires { out.emplace(); }) {
    out.reset();
    if (text == "none" || text == "null") return {};
    return read_option(text, out.emplace());
  } else {
    return "is a list";
  }
}

// Sets the option `name` of `options` to the values of a list, or to a single value. Returns what
// is wrong, or "".
template <class Options>
std::string set_option(Options& options, std::string_view name,
                       std::span<const std::string_view> values) {
  const auto table = option_table<Options>();
  const auto row =
      std::find_if(table.begin(), table.end(), [name](const auto& r) { return r.name == name; });
  if (row == table.end()) {
    std::string all;
    for (const auto& r : table) all.append(all.empty() ? "" : ", ").append(r.name);
    return "is no option; the options are " + all;
  }
  return std::visit(
      [&](auto member) -> std::string {
        auto& out = options.*member;
        constexpr bool is_list = std::is_same_v<std::decay_t<decltype(out)>, std::vector<double>>;
        if constexpr (is_list) out.clear();
        if (!is_list && values.size() != 1) return "is one value";
        for (const std::string_view value : values)
          if (std::string why = read_option(value, out); !why.empty())
            return why + ": " + std::string(value.substr(0, 100)) + "; allowed: " + allowed(*row);
        return {};
      },
      row->member);
}

}  // namespace melflow
