#include "stages/output/output_sections.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "stages/files/undo_file.h"

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

std::size_t OutputSections::of(std::size_t file) const {
  const auto behind = std::upper_bound(firsts_.begin(), firsts_.end() - 1, file);
  return static_cast<std::size_t>(behind - firsts_.begin()) - 1;
}

std::string OutputSections::path_of(const std::string& path, const std::string& split) {
  if (split.empty()) return path;
  const std::filesystem::path p(path);
  return (p.parent_path() / (p.stem().string() + "." + split + p.extension().string())).string();
}

std::vector<std::string> OutputSections::splits_beside(const std::string& path) {
  const std::filesystem::path p(path);
  const std::string begin = p.stem().string() + ".", end = p.extension().string();
  const std::filesystem::path folder = p.parent_path().empty() ? "." : p.parent_path();
  std::set<std::string> out;
  std::error_code none;
  for (std::filesystem::directory_iterator it(folder, none), last; !none && it != last;
       it.increment(none)) {
    std::string name = it->path().filename().string();
    // While a file is extended it has another name, and only its undo file tells of it.
    if (name.ends_with(UndoFile::kEnding)) name.resize(name.size() - UndoFile::kEnding.size());
    if (name.size() > begin.size() + end.size() && name.starts_with(begin) && name.ends_with(end))
      out.insert(name.substr(begin.size(), name.size() - begin.size() - end.size()));
  }
  return {out.begin(), out.end()};
}

}  // namespace melflow
