#include "pipeline/facts.h"

#include <fmt/format.h>

#include <stdexcept>

namespace melflow {

namespace detail {

void throw_other_type(const std::string& name) {
  throw std::logic_error("two keys of different types are called '" + name + "'");
}

std::string fact_text(double value) { return fmt::format("{}", value); }
std::string fact_text(std::int64_t value) { return fmt::format("{}", value); }
std::string fact_text(const std::string& value) { return value; }

}  // namespace detail

std::vector<Requirements::Conflict> Requirements::merge(const Requirements& other) {
  std::vector<Conflict> conflicts;
  for (const auto& [name, added] : other.values_) {
    const auto [it, is_new] = values_.emplace(name, added);
    if (is_new) continue;
    if (auto conflict = added.combine(name, it->second.value, added.value))
      conflicts.push_back(std::move(*conflict));
  }
  return conflicts;
}

}  // namespace melflow
