// The files of an earlier output and their splits, for the source of an update, which needs them
// before the sink opens that output.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace melflow {

struct RunContext;

/// Passed to the source by a sink that can update its output.
struct EarlierFiles {
  /// `path`: as it was listed; `split`: name of the file's split, "" for none. Both stay valid
  /// until the sink starts.
  using Visit = std::function<void(std::string_view path, std::string_view split)>;
  /// Calls `visit` for every file of the earlier output, if there is one. `splits`: names of splits
  /// that may be part of the output's file names. Throws RunError when the output cannot be
  /// updated.
  std::function<void(const std::vector<std::string>& splits, const Visit& visit)> visit;
  /// Announces the files that the output may have, and checks that nobody else's are beside it; to
  /// be called for all sinks before the first recover(). Throws RunError.
  std::function<void(RunContext&)> announce = [](RunContext&) {};
  /// Completes the publication that an interrupted run began for the announced outputs, which get
  /// their names together; before the first visit().
  std::function<void(RunContext&)> recover = [](RunContext&) {};
};

/// Joins several outputs: each file comes as often as it is in one of them, those of the first
/// output first. `tell` gets a warning where two outputs have a file in different splits.
EarlierFiles together(const std::vector<std::shared_ptr<const EarlierFiles>>& outputs,
                      std::function<void(const std::string&)> tell);

/// Maps each path of the earlier output to the name of its split, "" for none.
using EarlierSplits = std::unordered_map<std::string_view, std::string_view>;

}  // namespace melflow
