// One description of a stage's options serves reading, range checks, help, generated docs and the
// echo of the configuration into the output. An options struct has defaults and one function:
//
//   struct GainOptions {
//     float gain_db = 0;
//     void describe(Schema& s) {
//       s.field("gain_db", gain_db, "gain applied to every sample [dB]").range(-60, 60);
//     }
//   };
//
// The fields are bound to that instance: describe it once, then read a Value into it.
#pragma once

#include <charconv>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "pipeline/problem.h"
#include "pipeline/text.h"
#include "pipeline/value.h"

namespace melflow {

/// How a type is read from and written to a Value. Specialise it to make a type an option:
///   static std::string name();                       what help calls it: "integer", "size"
///   static std::string parse(const Value&, T& out);  "" or what is wrong ("12x is no integer")
///   static Value echo(const T&);                     parse(echo(x)) gives x again
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
/// "512MiB", "1.5GiB", "100 B"-like text, exact when it parses back.
std::string to_text(Bytes bytes);
/// The shortest text that reads back as the same number of the same type.
std::string number_text(double value);
std::string number_text(float value);

class Schema;

/// One option: what help shows, and how to read and echo it.
class Field {
 public:
  std::string name;
  std::string doc;
  std::string type;
  std::string default_text;
  std::vector<std::string> choices;  ///< enumerations only
  std::vector<Field> children;       ///< groups only
  std::optional<double> lowest, highest;
  bool lowest_exclusive = false;
  bool is_tuning = false;

  Field& range(double lo, double hi) {
    lowest = lo;
    highest = hi;
    return *this;
  }
  Field& at_least(double lo) {
    lowest = lo;
    return *this;
  }
  Field& greater_than(double lo) {
    lowest = lo;
    lowest_exclusive = true;
    return *this;
  }
  /// Changes how fast a run is, never its result: left out of the hash of the feature settings.
  Field& tuning() {
    is_tuning = true;
    return *this;
  }
  /// Read before the fields without this, wherever the user wrote it; then `apply` sets what it
  /// implies for them (a preset).
  Field& implies(std::function<void()> apply) {
    apply_ = std::move(apply);
    return *this;
  }
  /// Without effect unless `is_so`, asked when all options are read; `setting` names what it takes:
  /// "compression: deflate".
  Field& used_with(std::string setting, std::function<bool()> is_so) {
    setting_ = std::move(setting);
    is_used_ = std::move(is_so);
    return *this;
  }
  [[nodiscard]] bool is_used() const { return !is_used_ || is_used_(); }
  /// As it would be without being written, or without what implies another value.
  [[nodiscard]] bool is_default() const;
  /// "1 to 64", "at least 0", "more than 0", "a, b or c", "".
  [[nodiscard]] std::string allowed() const;
  /// "" or the complaint about a number outside the range.
  [[nodiscard]] std::string check_range(double value) const;

 private:
  friend class Schema;
  std::function<void(const Field&, const Value&, const std::string& path, Problems&)> read_;
  std::function<Value(bool with_tuning)> echo_;
  std::function<void()> apply_;
  mutable std::string implied_;  // by an option that was read; "" where none was
  std::string setting_;
  std::function<bool()> is_used_;
  // A number to hold against the range, where the type has one.
  std::function<std::optional<double>()> number_;
};

class Schema {
 public:
  template <class T>
  Field& field(std::string name, T& target, std::string doc);

  /// A nested map of options; T has describe(Schema&) itself.
  template <class T>
  Field& group(std::string name, std::optional<T>& target, std::string doc);

  /// Reads a map into the described options; unknown keys and bad values become problems, each
  /// with its place. `path` ("mel.") goes before the key in messages.
  void read(const Value& map, const std::string& path, Problems& problems) const;
  /// What of the map that was read has no effect beside the other options. What is as it would be
  /// without being written is not worth a word: stored configurations have all options in them.
  void find_unused(const Value& map, const std::string& path, Problems& remarks) const;
  /// All options with their present values; `with_tuning` false leaves out what cannot change a
  /// result.
  [[nodiscard]] Value echo(bool with_tuning = true) const;
  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::vector<Field> fields_;
};

// ---- option types -----------------------------------------------------------------------------

namespace detail {
std::string parse_integer(const Value& v, std::int64_t& out);
std::string parse_number(const Value& v, double& out);
std::string describe_value(const Value& v);
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
  static Value echo(const Bytes& v) { return Value::scalar(to_text(v)); }
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

/// null (or `none`, `auto`) means: not set.
template <class T>
struct OptionType<std::optional<T>> {
  static std::string name() { return OptionType<T>::name(); }
  static std::string parse(const Value& v, std::optional<T>& out) {
    // In quotes, too, where it could not be a value of the type: configurations are stored as JSON.
    if (v.is_null() || (v.is_scalar() && (!v.quoted() || std::is_arithmetic_v<T>) &&
                        (v.text() == "none" || v.text() == "auto" || v.text() == "null"))) {
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

/// A list, or one scalar that stands for a list of one.
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

// ---- templates --------------------------------------------------------------------------------

namespace detail {
template <class T>
std::optional<double> as_number(const T& v) {
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) return static_cast<double>(v);
  if constexpr (std::is_same_v<T, Bytes>) return static_cast<double>(v.count);
  return {};
}
template <class T>
std::optional<double> as_number(const std::optional<T>& v) {
  return v ? as_number(*v) : std::nullopt;
}
template <class T>
std::vector<std::string> choices_of() {
  if constexpr (requires { OptionType<T>::choices(); }) return OptionType<T>::choices();
  return {};
}
}  // namespace detail

template <class T>
Field& Schema::field(std::string name, T& target, std::string doc) {
  Field& f = fields_.emplace_back();
  f.name = std::move(name);
  f.doc = std::move(doc);
  f.type = OptionType<T>::name();
  f.choices = detail::choices_of<T>();
  f.echo_ = [&target](bool) { return OptionType<T>::echo(target); };
  f.default_text = to_json(f.echo_(true));
  f.number_ = [&target] { return detail::as_number(target); };
  f.read_ = [&target](const Field& self, const Value& v, const std::string& path, Problems& out) {
    T parsed = target;
    std::string why = OptionType<T>::parse(v, parsed);
    if (why.empty())
      if (const auto number = detail::as_number(parsed)) why = self.check_range(*number);
    if (!why.empty()) {
      out.add(v.mark(), path + self.name + ": " + why);
      return;
    }
    target = std::move(parsed);
  };
  return f;
}

template <class T>
Field& Schema::group(std::string name, std::optional<T>& target, std::string doc) {
  Field& f = fields_.emplace_back();
  f.name = std::move(name);
  f.doc = std::move(doc);
  f.type = "group";
  f.default_text = "null";
  {
    T defaults{};
    Schema inner;
    defaults.describe(inner);
    f.children = inner.fields_;
    for (Field& child : f.children) {  // which are bound to what ends here
      child.read_ = nullptr;
      child.echo_ = nullptr;
      child.apply_ = nullptr;
      child.number_ = nullptr;
      child.is_used_ = nullptr;
    }
  }
  f.echo_ = [&target](bool with_tuning) -> Value {
    if (!target) return {};
    Schema inner;
    target->describe(inner);
    return inner.echo(with_tuning);
  };
  f.read_ = [&target](const Field& self, const Value& v, const std::string& path, Problems& out) {
    if (v.is_null()) {
      target.reset();
      return;
    }
    if (!v.is_map()) {
      out.add(v.mark(), path + self.name + ": " + detail::describe_value(v) +
                            " found where a map of options is expected");
      return;
    }
    if (!target) target.emplace();
    Schema inner;
    target->describe(inner);
    inner.read(v, path + self.name + ".", out);
  };
  return f;
}

}  // namespace melflow
