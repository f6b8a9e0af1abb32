// The types of options, and how their values are read and written: numbers, booleans, texts, sizes,
// enumerations, and lists and optional values of these.
#pragma once

#include <fmt/core.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/base/value.h"

namespace melflow {

/// How a type is read from and written to a Value. Specialise it to make a type an option:
///   static std::string name();                       its name in help: "integer", "size"
///   static std::string parse(const Value&, T& out);  "" or what is wrong ("12x is no integer")
///   static Value echo(const T&);                     parse(echo(x)) yields x again
template <class T, class = void>
struct OptionType;

/// The names of an enumeration's values, in the order help shows them. Specialise with
///   static constexpr std::pair<const char*, E> values[] = {...};
template <class E>
struct EnumNames;

/// A number of bytes written with a unit: 4096, 64KiB, 1.5GiB, 10MB.
struct Bytes {
  std::uint64_t count = 0;
  friend bool operator==(const Bytes&, const Bytes&) = default;
};
/// Rounds a size up to whole MiB, from 1 MiB on, and writes it as in a configuration.
std::string rounded_up(std::size_t bytes);
/// The shortest text that reads back as the same number of the same type.
std::string number_text(double value);
std::string number_text(float value);

namespace detail {
std::string parse_integer(const Value& v, std::int64_t& out);
std::string parse_number(const Value& v, double& out);
std::string describe_value(const Value& v);
/// Describes the problem of a value of the wrong type: "'loud' is not a number".
std::string is_not(const Value& v, const std::string& what);
/// Describes the problem of a missing value.
std::string is_not_written();
/// Splits a text such as "10 ms" into its number, 0 or more, and its unit: {10, "ms"}. Nullopt if
/// the value is not a text that begins with such a number.
std::optional<std::pair<double, std::string_view>> number_and_unit(const Value& v);
std::optional<std::pair<double, std::string_view>> number_and_unit(const Value&& v) = delete;
/// Like is_not(), for number_and_unit(); says so if only the sign is wrong.
std::string is_no_amount(const Value& v, const std::string& expected);
}  // namespace detail

template <class T>
struct OptionType<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static std::string name() { return "integer"; }
  static std::string parse(const Value& v, T& out) {
    std::int64_t n = 0;
    if (std::string why = detail::parse_integer(v, n); !why.empty()) return why;
    if (n < static_cast<std::int64_t>(std::numeric_limits<T>::min()))
      return excerpt(v.text()) + " is too small";
    if (sizeof(T) < 8 && n > static_cast<std::int64_t>(std::numeric_limits<T>::max()))
      return excerpt(v.text()) + " is too large";
    out = static_cast<T>(n);
    return {};
  }
  static Value echo(const T& v) { return Value::scalar(std::to_string(v)); }
};

template <class T>
struct OptionType<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static std::string name() { return "number"; }
  static std::string parse(const Value& v, T& out) {
    double n = 0;
    if (std::string why = detail::parse_number(v, n); !why.empty()) return why;
    out = static_cast<T>(n);
    return {};
  }
  static Value echo(const T& v) { return Value::scalar(number_text(v)); }
};

template <>
struct OptionType<bool> {
  static std::string name() { return "true or false"; }
  static std::string parse(const Value& v, bool& out);
  static Value echo(const bool& v) { return Value::scalar(v ? "true" : "false"); }
};

template <>
struct OptionType<std::string> {
  static std::string name() { return "text"; }
  static std::string parse(const Value& v, std::string& out);
  static Value echo(const std::string& v) { return Value::scalar(v, {}, true); }
};

template <>
struct OptionType<Bytes> {
  static std::string name() { return "size (64KiB, 1GiB)"; }
  static std::string parse(const Value& v, Bytes& out);
  /// Gives "512MiB", "1536MiB" or "100B", which reads back as exactly the same size.
  static Value echo(const Bytes& v);
};

template <class E>
struct OptionType<E, std::enable_if_t<std::is_enum_v<E>>> {
  static std::string name() { return "choice"; }
  static std::vector<std::string> choices() {
    std::vector<std::string> out;
    out.reserve(std::size(EnumNames<E>::values));
    for (const auto& [text, value] : EnumNames<E>::values) out.emplace_back(text);
    return out;
  }
  static std::string parse(const Value& v, E& out) {
    for (const auto& [text, value] : EnumNames<E>::values) {
      if (v.is_scalar() && v.text() == text) {
        out = value;
        return {};
      }
    }
    std::string all;
    for (const std::string& c : choices()) all += (all.empty() ? "" : ", ") + c;
    return detail::describe_value(v) + " is not one of " + all +
           (v.is_scalar() ? did_you_mean(v.text(), choices()) : "");
  }
  static Value echo(const E& v) {
    for (const auto& [text, value] : EnumNames<E>::values)
      if (value == v) return Value::scalar(text);
    return {};
  }
};

/// A map of anything, as written.
struct ValueMap {
  Value map = Value::map({});
};
template <>
struct OptionType<ValueMap> {
  static std::string name() { return "map"; }
  static std::string parse(const Value& v, ValueMap& out) {
    if (v.is_null()) return {};
    if (!v.is_map()) return detail::is_not(v, "a map of names and values");
    out.map = v;
    return {};
  }
  static Value echo(const ValueMap& v) { return v.map; }
};

/// Reads null (or `none`, `auto`) as "not set".
template <class T>
struct OptionType<std::optional<T>> {
  static std::string name() { return OptionType<T>::name(); }
  static std::string parse(const Value& v, std::optional<T>& out) {
    // Quoted words count too unless T can hold them: configurations are stored as JSON.
    const bool may_be_word = !v.quoted() || std::is_arithmetic_v<T>;
    const bool is_word = v.text() == "none" || v.text() == "auto" || v.text() == "null";
    if (v.is_null() || (v.is_scalar() && may_be_word && is_word)) {
      out.reset();
      return {};
    }
    T inner{};
    std::string why = OptionType<T>::parse(v, inner);
    if (why.empty()) out = inner;
    return why;
  }
  static Value echo(const std::optional<T>& v) { return v ? OptionType<T>::echo(*v) : Value{}; }
};

/// Reads a list; a single scalar stands for a list of one.
template <class T>
struct OptionType<std::vector<T>> {
  static std::string name() { return "list of " + OptionType<T>::name(); }
  static std::string parse(const Value& v, std::vector<T>& out) {
    std::vector<T> items;
    const auto add = [&](const Value& item) {
      T one{};
      std::string why = OptionType<T>::parse(item, one);
      if (why.empty()) items.push_back(std::move(one));
      return why;
    };
    if (v.is_list()) {
      for (const Value& item : v.items())
        if (std::string why = add(item); !why.empty()) return why;
    } else if (std::string why = add(v); !why.empty()) {
      return why;
    }
    out = std::move(items);
    return {};
  }
  static Value echo(const std::vector<T>& v) {
    std::vector<Value> items;
    items.reserve(v.size());
    for (const T& item : v) items.push_back(OptionType<T>::echo(item));
    return Value::list(std::move(items));
  }
};

}  // namespace melflow

// Doxygen 1.9 fails on a specialisation whose template it has not seen.
/// @cond
// In messages a size is written as in a configuration.
template <>
struct fmt::formatter<melflow::Bytes> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const melflow::Bytes& bytes, Context& context) const {
    return formatter<std::string>::format(melflow::OptionType<melflow::Bytes>::echo(bytes).text(),
                                          context);
  }
};
/// @endcond
