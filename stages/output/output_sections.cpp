#include "stages/output/output_sections.h"

#include <filesystem>

namespace melflow {

const Manifest* manifest_with_splits(const RunContext& run) {
  const auto* listed = manifest_source(run);
  return listed != nullptr && !listed->manifest().split_names().empty() ? &listed->manifest()
                                                                        : nullptr;
}

OutputSections::OutputSections(const std::string& path, bool split_files, const RunContext& run,
                               std::size_t files) {
  const Manifest* splits = split_files ? manifest_with_splits(run) : nullptr;
  if (splits == nullptr) {
    paths_ = {path};
    firsts_ = {0, files};
    return;
  }
  for (const Manifest::SplitRange& range : splits->split_ranges()) {
    firsts_.push_back(range.first);
    paths_.push_back(path_of(path, splits->split_name(range.split)));
  }
  firsts_.push_back(files);
}

std::string OutputSections::path_of(const std::string& path, const std::string& split) {
  if (split.empty()) return path;
  const std::filesystem::path p(path);
  return (p.parent_path() / (p.stem().string() + "." + split + p.extension().string())).string();
}

}  // namespace melflow
