#include "pipeline/registry.h"

#include <algorithm>
#include <stdexcept>

namespace melflow {

std::vector<std::string> Facts::merge_max(const Facts& other) {
  std::vector<std::string> different;
  for (const auto& [name, value] : other.values_) {
    const auto [it, is_new] = values_.emplace(name, value);
    if (is_new) continue;
    if (it->second != value && exact_.contains(name) && other.exact_.contains(name))
      different.push_back(name);
    it->second = std::max(it->second, value);
  }
  exact_.insert(other.exact_.begin(), other.exact_.end());
  for (const auto& [name, object] : other.objects_) objects_.emplace(name, object);
  return different;
}

Registry& Registry::global() {
  static Registry registry;
  return registry;
}

void Registry::add(StageInfo info) {
  if (info.contract_name.empty()) info.contract_name = info.name;
  if (find(info.name) != nullptr)
    throw std::logic_error("two stages are registered as '" + info.name + "'");
  stages_.push_back(std::make_unique<StageInfo>(std::move(info)));
  std::sort(stages_.begin(), stages_.end(),
            [](const auto& a, const auto& b) { return a->name < b->name; });
}

const StageInfo* Registry::find(const std::string& name) const {
  for (const auto& s : stages_)
    if (s->name == name) return s.get();
  return nullptr;
}

std::vector<const StageInfo*> Registry::all() const {
  std::vector<const StageInfo*> out;
  for (const auto& s : stages_) out.push_back(s.get());
  return out;
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> out;
  for (const auto& s : stages_) out.push_back(s->name);
  return out;
}

}  // namespace melflow
