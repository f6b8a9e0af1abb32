// A value, or the reason why an item has none. A bad file is such a reason, never an exception.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace melflow {

/// The reason why a source item has no result. `skipped`: there was nothing to do for it (too
/// short, a folder); `failed`: it should have worked.
struct ItemError {
  enum class Kind { skipped, failed };
  Kind kind = Kind::failed;
  std::string reason;

  static ItemError skipped(std::string reason) { return {Kind::skipped, std::move(reason)}; }
  static ItemError failed(std::string reason) { return {Kind::failed, std::move(reason)}; }
};

template <class T>
class Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}          // NOLINT
  Result(ItemError error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  ItemError& error() { return std::get<1>(state_); }
  [[nodiscard]] const ItemError& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, ItemError> state_;
};

}  // namespace melflow
