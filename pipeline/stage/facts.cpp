#include "pipeline/stage/facts.h"

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

void Properties::keep_equal(const Properties& other) {
  std::erase_if(values_, [&other](const auto& own) {
    const auto it = other.values_.find(own.first);
    return it == other.values_.end() || !own.second.are_equal(own.second.value, it->second.value);
  });
}

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
