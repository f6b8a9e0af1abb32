#include "stages/device/split_devices.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/text.h"

namespace melflow {

SplitDevices::SplitDevices(const Manifest* manifest,
                           const std::map<std::string, std::vector<int>>& of_splits,
                           std::string& unknown) {
  std::vector<std::string> names;
  if (manifest != nullptr) names = manifest->split_names();
  devices_.resize(names.size());
  for (const auto& [split, devices] : of_splits) {
    const auto it = std::find(names.begin(), names.end(), split);
    if (it != names.end())
      devices_[static_cast<std::size_t>(it - names.begin())] = devices;
    else
      unknown += fmt::format("{}there is no split {}", unknown.empty() ? "" : ", ", excerpt(split));
  }
  if (!unknown.empty())
    unknown += names.empty() ? "; the files have none"
                             : fmt::format("; there are {}", fmt::join(names, ", "));
  if (!names.empty()) manifest_ = manifest;
}

std::span<const int> SplitDevices::of(std::size_t file) const {
  if (manifest_ == nullptr) return {};
  const int split = manifest_->split(file);
  return split < 0 ? std::span<const int>() : devices_[static_cast<std::size_t>(split)];
}

}  // namespace melflow
