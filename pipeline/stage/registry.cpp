#include "pipeline/stage/registry.h"

#include <algorithm>
#include <cctype>
#include <mutex>
#include <stdexcept>

#include <fmt/format.h>

#include "pipeline/base/sentences.h"

namespace melflow {
namespace {
// Guards all registries, so that they stay movable; ready before any static initialisation.
constinit std::mutex changing;
}  // namespace

template <>
void check_abi<std::string, std::vector<int>>() {}

Registry& Registry::global() {
  static Registry registry;
  return registry;
}

void Registry::add(StageInfo info) {
  if (info.feature_stage.empty()) info.feature_stage = info.name;
  const std::lock_guard lock(changing);
  if (taken_ != nullptr) return taken_->push_back(std::move(info));
  for (const auto& s : stages_)
    if (s->name == info.name)
      throw std::logic_error("two stages are registered as '" + info.name + "'");
  stages_.push_back(std::make_unique<StageInfo>(std::move(info)));
  std::sort(stages_.begin(), stages_.end(),
            [](const auto& a, const auto& b) { return a->name < b->name; });
}

std::vector<StageInfo> Registry::added_by(const std::function<void()>& load) {
  std::vector<StageInfo> out;
  const auto take = [this](std::vector<StageInfo>* taken) {
    const std::lock_guard lock(changing);
    taken_ = taken;
  };
  take(&out);
  load();
  take(nullptr);
  return out;
}

const StageInfo* Registry::find(const std::string& name) const {
  const std::lock_guard lock(changing);
  for (const auto& s : stages_)
    if (s->name == name) return s.get();
  return nullptr;
}

std::string Registry::advice_on(const std::string& name) const {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const OtherName& other : other_names_)
    if (other.name == lower && find(std::string(other.here)) != nullptr)
      return fmt::format("; use '{}' instead{}{}", other.here, other.how.empty() ? "" : ": ",
                         other.how);
  if (find(lower) != nullptr) return did_you_mean(lower);
  return did_you_mean(name, names());
}

std::vector<const StageInfo*> Registry::all() const {
  const std::lock_guard lock(changing);
  std::vector<const StageInfo*> out;
  for (const auto& s : stages_) out.push_back(s.get());
  return out;
}

std::vector<std::string> Registry::names() const {
  const std::lock_guard lock(changing);
  std::vector<std::string> out;
  for (const auto& s : stages_) out.push_back(s->name);
  return out;
}

}  // namespace melflow
