#include "stages/corpus/double_paths.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <system_error>

#include <fmt/format.h>

#include "pipeline/base/secrets.h"
#include "pipeline/base/text.h"
#include "stages/containers/container.h"
#include "stages/path_advice.h"

namespace melflow {
void DoublePaths::add(std::string_view path, int line) {
  lines_.push_back({XXH3_64bits(path.data(), path.size()), line});
}

std::vector<DoublePaths::Pair> DoublePaths::find() const {
  std::vector<std::size_t> order(lines_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    return lines_[a].path < lines_[b].path;
  });
  std::vector<Pair> out;
  for (std::size_t at = 0, first = 0; at < order.size(); ++at) {
    const Line& line = lines_[order[at]];
    const Line& of_first = lines_[order[first]];
    if (line.path != of_first.path)
      first = at;
    else if (at > first)
      out.push_back({order[first], order[at], of_first.line, line.line});
  }
  std::sort(out.begin(), out.end(),
            [](const Pair& a, const Pair& b) { return a.second < b.second; });
  return out;
}

namespace fs = std::filesystem;
namespace {

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) || stamp_of(path.string()).size >= 0;  // also in an archive
}

}  // namespace

std::string urls_of_list(const std::string& list, const Manifest& manifest) {
  std::size_t count = 0, first = 0;
  for (std::size_t i = 0; i < manifest.size(); ++i)
    if (!scheme_of(manifest.folder(i)).empty() && manifest.problem(i).empty() && count++ == 0)
      first = i;
  if (count == 0) return {};
  const std::string url = manifest.relative(first);
  const std::string_view scheme = scheme_of(url);
  return fmt::format(
      "{}: {} such as {}, and a list names files of disks: {}", list,
      count == manifest.size() ? std::string("its paths are URLs,")
                               : fmt::format("{} of its {} paths {},", count, manifest.size(),
                                             count == 1 ? "is a URL" : "are URLs"),
      excerpt(without_secrets(url)),
      scheme == "file"
          ? "write them without file://"
          : fmt::format("fetch them with {} and name the copies, or let Python give the URLs as "
                        "audio of its items (docs/python.md, Recordings from Python)",
                        copier_of(scheme)));
}

std::string doubled_root(const std::string& list, const Manifest& manifest) {
  std::size_t first = 0, last = manifest.size() - 1;  // the first and the last entry to be read
  while (first < last && !manifest.problem(first).empty()) ++first;
  while (last > first && !manifest.problem(last).empty()) --last;
  const std::string listed = manifest.relative(first), looked_for = manifest.path(first);
  if (!scheme_of(listed).empty()) return {};  // urls_of_list()
  if (manifest.root().empty() || fs::path(listed).is_absolute() || is_there(looked_for)) return {};
  fs::path root(manifest.root());
  if (!root.has_filename()) root = root.parent_path();  // for a root such as "clips/"
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
