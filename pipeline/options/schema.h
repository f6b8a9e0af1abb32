// A single description of a stage's options serves reading, range checks, help, generated docs and
// the copy of the configuration in the output. An options struct has defaults and one function:
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

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "pipeline/base/problem.h"
#include "pipeline/base/value.h"
#include "pipeline/options/option_type.h"

namespace melflow {

class Schema;

/// The name of an option in other programs. It is not read as an option; the error message suggests
/// the name in melflow.
struct OtherName {
  std::string_view name;   ///< "hop_length"
  std::string_view whose;  ///< "librosa, torchaudio"; "" for no program in particular
  std::string_view here;   ///< the option's name in melflow
  /// The value to write in melflow if it differs. VALUE stands for the given value; a unit after
  /// it, as in "VALUEms", is added only to plain numbers.
  std::string_view how = "";
};

/// A value that an option does not accept, but that others use or that somebody might guess.
struct OtherValue {
  std::string_view option;
  std::string_view value;  ///< "hanning"; "*ms": any with that end; "*": any; "[]", "{}": list, map
  std::string_view advice;  ///< end of the message: "write hann"; VALUE stands for the given value
};

/// An option: its help, and how it is read and written out.
class Field {
 public:
  std::string name;
  std::string doc;
  std::string type;
  std::string default_text;
  std::vector<std::string> choices;  ///< of an enumeration, or of the items of a list
  std::vector<Field> children;       ///< for groups only
  std::optional<double> lowest, highest;
  bool lowest_exclusive = false;
  bool is_tuning = false;
  std::optional<std::string> older;  ///< see was()

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
  /// Marks an option that changes the speed of a run, never its result. Such options are left out
  /// of the feature settings.
  Field& tuning() {
    is_tuning = true;
    return *this;
  }
  /// The value to use if the configuration in an output or a job lacks the option: what versions
  /// before the option did. Stored configurations have all options of their version.
  Field& was(std::string value) {
    older = std::move(value);
    return *this;
  }
  /// Makes the option be read before others, wherever it is written; `apply` then sets the values
  /// that it implies for them (a preset).
  Field& implies(std::function<void()> apply) {
    apply_ = std::move(apply);
    return *this;
  }
  /// Makes the option effective only if `is_so` returns true, called after all options are read;
  /// `setting` names the condition: "compression: deflate".
  Field& used_with(std::string setting, std::function<bool()> is_so) {
    setting_ = std::move(setting);
    is_used_ = std::move(is_so);
    return *this;
  }
  [[nodiscard]] bool is_used() const { return !is_used_ || is_used_(); }
  /// Whether its value is the one that it has when neither written nor implied by another option.
  [[nodiscard]] bool is_default() const;
  /// The allowed values: "1 to 64", "at least 0", "more than 0", "a, b or c", or "".
  [[nodiscard]] std::string allowed() const;
  /// Describes the problem of a number outside the range; "" for a number in it.
  [[nodiscard]] std::string check_range(double value) const;
  /// The end of the message about a value of another type: "; allowed: 1 to 64".
  [[nodiscard]] std::string also_allowed(const Value& refused) const;

 private:
  friend class Schema;
  std::function<void(const Field&, const Value&, const std::string& path, Problems&)> read_;
  std::function<Value(bool with_tuning)> echo_;
  std::function<void()> apply_;
  mutable std::string implied_;  // value implied by an option that was read; "" for none
  std::string setting_;
  std::function<bool()> is_used_;
  // Returns the number to compare with the range, for types that have one.
  std::function<std::optional<double>()> number_;
};

class Schema {
 public:
  template <class T>
  Field& field(std::string name, T& target, std::string doc);

  /// Adds a nested map of options; T has its own describe(Schema&).
  template <class T>
  Field& group(std::string name, std::optional<T>& target, std::string doc);

  /// Sets the names that other programs have for the options; `names` must live as long as the
  /// program.
  void other_names(std::span<const OtherName> names) { other_names_ = names; }
  [[nodiscard]] std::span<const OtherName> other_names() const { return other_names_; }
  /// Sets values that are refused with specific advice; the first one that matches counts.
  void other_values(std::span<const OtherValue> values) { other_values_ = values; }

  /// Reads a map into the described options; reports unknown keys and bad values with their
  /// positions. `path` ("mel.") precedes the key in messages.
  void read(const Value& map, const std::string& path, Problems& problems) const;
  /// Reports options of the map that have no effect, or only a partial one, because of others.
  /// Skips options with their default, as stored configurations contain all options.
  void find_unused(const Value& map, const std::string& path, Problems& remarks) const;
  /// Makes a map that an earlier version stored one of this version: adds the options that it
  /// lacks, with the values that Field::was() gives, and removes those that are gone without a
  /// successor.
  void update_stored(Value& map) const;
  /// All options with their current values; without tuning options if `with_tuning` is false.
  [[nodiscard]] Value echo(bool with_tuning = true) const;
  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  static void add_older(Value& map, const std::vector<Field>& fields);

  std::vector<Field> fields_;
  std::span<const OtherName> other_names_;
  std::span<const OtherValue> other_values_;
};

/// Adds names of settings in other programs, recognised at any position in a configuration: `here`
/// is "stage.option", or an option at the top of the configuration. `names` must live as long as
/// the program. Not to be called while anything is read.
void add_settings_elsewhere(std::span<const OtherName> names);

/// Returns a hint for a key that is neither an option of the schemas nor in `more`. If it is
/// another program's name for an option: melflow's name for it, with the given value as melflow
/// writes it. Else the nearest name, or "" if there is none.
std::string advice_on(std::string_view key, std::initializer_list<const Schema*> schemas,
                      const Value& given, const std::vector<std::string>& more = {});

// ---- templates --------------------------------------------------------------------------------

namespace detail {
template <class T>
std::optional<double> as_number(const T& v) {
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) return static_cast<double>(v);
  if constexpr (std::is_same_v<T, Bytes>) return static_cast<double>(v.count);
  if constexpr (requires { v.as_number(); }) return v.as_number();
  return {};
}
template <class T>
std::optional<double> as_number(const std::optional<T>& v) {
  return v ? as_number(*v) : std::nullopt;
}
/// The choices of an enumeration, an optional enumeration, or a list of enumerations.
template <class T>
std::vector<std::string> choices_of() {
  if constexpr (requires { OptionType<T>::choices(); })
    return OptionType<T>::choices();
  else if constexpr (requires { typename T::value_type; } && !std::is_same_v<T, std::string>)
    return choices_of<typename T::value_type>();
  else
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
  f.read_ = [&target, unset = target](const Field& self, const Value& v, const std::string& path,
                                      Problems& out) {
    T parsed = target;
    std::string why = OptionType<T>::parse(v, parsed);
    if (why.empty() && v.is_missing()) why = detail::is_not_written();
    // Null resets every option to its default, whatever another option implies, unless its type
    // gives null a meaning.
    if (!why.empty() && v.is_null() && !v.is_missing()) {
      target = unset;
      return;
    }
    if (!why.empty())
      why += self.also_allowed(v);
    else if (const auto number = detail::as_number(parsed))
      why = self.check_range(*number);
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
    for (Field& child : f.children) {  // they are bound to `defaults`, which ends here
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
    if (v.is_missing()) {
      out.add(v.mark(), path + self.name + ": " + detail::is_not_written());
      return;
    }
    if (v.is_null()) {
      target.reset();
      return;
    }
    if (!v.is_map()) {
      out.add(v.mark(), path + self.name + ": " + detail::is_not(v, "a map of options"));
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
