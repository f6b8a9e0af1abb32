#include "stages/corpus/doubled_root.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "stages/path_advice.h"

namespace melflow {
namespace fs = std::filesystem;
namespace {

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

}  // namespace

std::string doubled_root(const std::string& list, const Manifest& manifest) {
  std::size_t first = 0, last = manifest.size() - 1;  // that are to be read
  while (first < last && !manifest.problem(first).empty()) ++first;
  while (last > first && !manifest.problem(last).empty()) --last;
  const std::string listed = manifest.relative(first), looked_for = manifest.path(first);
  if (const std::string url = url_problem(listed); !url.empty())
    return fmt::format("{}: its first path {}", list, url);
  if (manifest.root().empty() || fs::path(listed).is_absolute() || is_there(looked_for)) return {};
  fs::path root(manifest.root());
  if (!root.has_filename()) root = root.parent_path();  // "clips/"
  const fs::path beside = root.parent_path() / listed;
  const bool is_beside = is_there(beside);
  if (!is_beside && !is_there(listed) && is_there(manifest.path(last))) return {};
  if (!is_beside && !is_there(listed))
    return fmt::format(
        "{}: neither its first file, {}, nor its last is there; the first is looked for at {}",
        list, listed, looked_for);
  return fmt::format(
      "{}: paths are relative to root, so that {} is looked for at {}, which does not exist; it is "
      "at {}. Write paths relative to root, or {}",
      list, listed, looked_for, is_beside ? beside.string() : listed,
      is_beside && !root.parent_path().empty() ? "set root to " + root.parent_path().string()
                                               : "leave root out");
}

}  // namespace melflow
