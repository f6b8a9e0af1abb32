// Files that a run reads beside the items of its source: the configuration, lists, statistics. Stages
// enter theirs in start(), so that a sink can tell an output from an input.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage.h"

namespace melflow {

struct FilesRead {
  static constexpr const char* kFact = "files_read";
  std::vector<std::string> paths;

  static void add(RunContext& run, std::string path) {
    auto all = std::make_shared<FilesRead>();
    all->paths = of(run);
    all->paths.push_back(std::move(path));
    run.shared.set_object<FilesRead>(kFact, std::move(all));
  }
  static std::vector<std::string> of(const RunContext& run) {
    const auto files = run.shared.get_object<FilesRead>(kFact);
    return files ? files->paths : std::vector<std::string>();
  }
};

}  // namespace melflow
