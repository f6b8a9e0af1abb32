// split_devices.h - which devices the files of a split go to.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "stages/manifest.h"

namespace melflow {

class SplitDevices {
 public:
  // Any file to any device.
  SplitDevices() = default;
  // `manifest`: outlives this one; null: there are no splits. Into `unknown`: which of the names
  // are no splits, or "".
  SplitDevices(const Manifest* manifest, const std::map<std::string, std::vector<int>>& of_splits,
               std::string& unknown);

  // By index; none: any device. Equal for files of one split.
  [[nodiscard]] std::span<const int> of(std::size_t file) const;

 private:
  const Manifest* manifest_ = nullptr;
  std::vector<std::vector<int>> devices_;  // by number of the split
};

}  // namespace melflow
