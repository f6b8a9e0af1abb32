// Requirements and properties, which nodes exchange before the run. Requirements travel upstream
// from a stage; properties of the items on an edge travel downstream.
//
//   inline constexpr Requirement<double, merge::Equal> kRate{"rate"};   declared once, in a header
//   above.set(kRate, 16000);                                            in Stage::require()
//   const double rate = required.get_or(kRate, 0);                      in Stage::plan()
//
// A key has the type of its value. A requirement's key also has the rule that merges the values of
// several branches. The framework only passes them on and merges them.
#pragma once

#include <algorithm>
#include <any>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace melflow {

/// Each merges another branch's requirement (`other`) into `mine`. Returns false and leaves `mine`
/// unchanged if the two contradict each other.
namespace merge {
struct Largest {
  template <class T>
  bool operator()(T& mine, const T& other) const {
    mine = std::max(mine, other);
    return true;
  }
};
struct Equal {
  template <class T>
  bool operator()(const T& mine, const T& other) const {
    return mine == other;
  }
};
/// Keeps the requirement of the branch that was written first.
struct First {
  template <class T>
  bool operator()(const T&, const T&) const {
    return true;
  }
};
/// Merges sets into their union.
struct Union {
  template <class Set>
  bool operator()(Set& mine, const Set& other) const {
    mine.insert(other.begin(), other.end());
    return true;
  }
};
}  // namespace merge

/// A key of Properties. Two keys of the same name must have the same type.
template <class T>
struct Property {
  using Type = T;
  const char* name;
};

/// A key of Requirements. Two keys of the same name must have the same type.
template <class T, class Merge>
struct Requirement {
  using Type = T;
  const char* name;
};

namespace detail {
/// Throws std::logic_error: the value stored under `name` has another type.
[[noreturn]] void throw_other_type(const std::string& name);
std::string fact_text(double value);
std::string fact_text(std::int64_t value);
std::string fact_text(const std::string& value);

template <class T>
const T& held(const std::string& name, const std::any& value) {
  const T* out = std::any_cast<T>(&value);
  if (out == nullptr) throw_other_type(name);
  return *out;
}
}  // namespace detail

/// The properties of the items on an edge.
class Properties {
 public:
  template <class T>
  void set(Property<T> key, std::type_identity_t<T> value) {
    values_[key.name] = {std::any(std::move(value)), &are_equal<T>};
  }
  template <class T>
  [[nodiscard]] std::optional<T> get(Property<T> key) const {
    const auto it = values_.find(key.name);
    if (it == values_.end()) return std::nullopt;
    return detail::held<T>(it->first, it->second.value);
  }
  template <class T>
  [[nodiscard]] T get_or(Property<T> key, std::type_identity_t<T> fallback) const {
    return get(key).value_or(std::move(fallback));
  }
  template <class T>
  void erase(Property<T> key) {
    values_.erase(key.name);
  }
  /// Keeps only the properties that `other` has with equal values; used where edges meet.
  void keep_equal(const Properties& other);

 private:
  struct Value {
    std::any value;
    bool (*are_equal)(const std::any& mine, const std::any& other) = nullptr;
  };
  template <class T>
  static bool are_equal(const std::any& mine, const std::any& other) {
    const T* theirs = std::any_cast<T>(&other);
    return theirs != nullptr && *std::any_cast<T>(&mine) == *theirs;
  }

  std::map<std::string, Value> values_;
};

/// The requirements of the stages downstream of an edge.
class Requirements {
 public:
  template <class T, class Merge>
  void set(Requirement<T, Merge> key, std::type_identity_t<T> value) {
    values_[key.name] = {std::any(std::move(value)), &combine<T, Merge>};
  }
  template <class T, class Merge>
  [[nodiscard]] std::optional<T> get(Requirement<T, Merge> key) const {
    const auto it = values_.find(key.name);
    if (it == values_.end()) return std::nullopt;
    return detail::held<T>(it->first, it->second.value);
  }
  template <class T, class Merge>
  [[nodiscard]] T get_or(Requirement<T, Merge> key, std::type_identity_t<T> fallback) const {
    return get(key).value_or(std::move(fallback));
  }
  template <class T, class Merge>
  void erase(Requirement<T, Merge> key) {
    values_.erase(key.name);
  }

  struct Conflict {
    std::string name;
    std::string mine, other;  ///< the values, as text
  };
  /// Merges another branch's requirements, each by its key's rule. Returns the contradictions.
  std::vector<Conflict> merge(const Requirements& other);

 private:
  using Combine = std::optional<Conflict> (*)(const std::string& name, std::any& mine,
                                              const std::any& other);
  struct Value {
    std::any value;
    Combine combine = nullptr;
  };

  template <class T, class Merge>
  static std::optional<Conflict> combine(const std::string& name, std::any& mine,
                                         const std::any& other) {
    T merged = detail::held<T>(name, mine);
    const T& added = detail::held<T>(name, other);
    if (Merge{}(merged, added)) {
      mine = std::move(merged);
      return std::nullopt;
    }
    if constexpr (requires { detail::fact_text(added); })
      return Conflict{name, detail::fact_text(merged), detail::fact_text(added)};
    return Conflict{name, "one", "another"};
  }

  std::map<std::string, Value> values_;
};

}  // namespace melflow
