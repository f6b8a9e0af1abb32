// Expressions of the tables of front ends: how a value follows from the keys of a model's file.
//
//   int(sampling_rate * 25 * 0.001)    'fixed' if do_normalize else 'none'    pow2(frame) * 2
//
// Python's operators and precedence, without calls of anything but the functions named in
// expression.cpp. Of a choice, `and` and `or` only what decides is evaluated.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace melflow {

/// A value: none, a truth value, a number, a text or a list of numbers.
class Term {
 public:
  using List = std::vector<double>;
  Term() = default;
  Term(bool value) : value_(value) {}                    // NOLINT(google-explicit-constructor)
  Term(double value) : value_(value) {}                  // NOLINT(google-explicit-constructor)
  Term(std::string value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Term(List value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool is_none() const { return std::holds_alternative<std::monostate>(value_); }
  [[nodiscard]] const bool* truth() const { return std::get_if<bool>(&value_); }
  [[nodiscard]] const double* number() const { return std::get_if<double>(&value_); }
  [[nodiscard]] const std::string* text() const { return std::get_if<std::string>(&value_); }
  [[nodiscard]] const List* list() const { return std::get_if<List>(&value_); }
  /// As Python's bool(): false for none, 0, "" and an empty list.
  [[nodiscard]] bool holds() const;
  bool operator==(const Term& other) const { return value_ == other.value_; }

 private:
  std::variant<std::monostate, bool, double, std::string, List> value_;
};

/// Says what cannot be computed: "0 divides hop_length".
struct ExpressionError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The value of a name; throws ExpressionError where there is none.
using Names = std::function<Term(std::string_view)>;

/// Throws ExpressionError.
Term evaluate(std::string_view expression, const Names& names);

}  // namespace melflow
