// split_devices.h - assigns the files of a split to devices.
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
  // Lets any file go to any device.
  SplitDevices() = default;
  // `manifest` must outlive this object; null: there are no splits. `unknown` gets a text that
  // lists the names in `of_splits` that are no splits, "" without any.
  SplitDevices(const Manifest* manifest, const std::map<std::string, std::vector<int>>& of_splits,
               std::string& unknown);

  // Returns the devices for a file, the same for all files of a split; empty: any device.
  [[nodiscard]] std::span<const int> of(std::size_t file) const;

 private:
  const Manifest* manifest_ = nullptr;
  std::vector<std::vector<int>> devices_;  // by number of the split
};

}  // namespace melflow
