// What an output of an earlier run says of its files, for the source of an update: it lists them
// before the sink looks at that output.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace melflow {

/// Required of the source by a sink which can be updated.
struct EarlierFiles {
  /// Path as it was listed, and the name of its split, "" for none; valid until the sink starts.
  using Visit = std::function<void(std::string_view path, std::string_view split)>;
  /// Calls `visit` for every file of the earlier output, if there is one; `splits` are names that
  /// its files may be called after. Throws RunError where the output cannot be updated.
  std::function<void(const std::vector<std::string>& splits, const Visit& visit)> visit;
};

/// Split of each path in the earlier output, "" for none.
using EarlierSplits = std::unordered_map<std::string_view, std::string_view>;

}  // namespace melflow
