#include "pipeline/base/no_such_file.h"

#include <strings.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/sentences.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostEntries = 10'000;  // of a folder that are looked at
constexpr std::size_t kMostNamed = 5;

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

// The names in a folder, sorted; none where it cannot be listed.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end;
       !error && it != end && out.size() < kMostEntries; it.increment(error))
    out.push_back(it->path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::string near_path(const std::string& path) {
  std::string without_slash = path;
  while (without_slash.size() > 1 && without_slash.back() == '/') without_slash.pop_back();
  const fs::path given(without_slash);
  std::vector<std::string> paths;
  for (const std::string& name : names_in(folder_of(without_slash)))
    paths.push_back((given.parent_path() / name).string());
  const std::string name = given.filename().string();
  std::vector<std::string> names;
  names.reserve(paths.size());
  for (const std::string& p : paths) names.push_back(fs::path(p).filename().string());
  const std::string near = did_you_mean(name, names);
  // Every other name is near to one of a single letter.
  for (std::size_t i = 0; i < names.size(); ++i)
    if (near == did_you_mean(names[i]) &&
        (given.stem().string().size() > 1 || strcasecmp(names[i].c_str(), name.c_str()) == 0))
      return did_you_mean(excerpt(paths[i], kLongestPath));
  return {};
}

std::string no_such_file(const std::string& path, const std::vector<std::string>& endings) {
  const fs::path folder = folder_of(path);
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return fmt::format("there is no folder {}{}", excerpt(folder.string(), kLongestPath),
                       near_path(folder.string()));
  const std::string message = "there is no such file";
  if (const std::string near = near_path(path); !near.empty()) return message + near;
  const std::string where = folder == "." ? "the current folder" : "its folder";
  std::vector<std::string> named;
  std::size_t others = 0;
  for (const std::string& name : names_in(folder)) {
    const std::string ending = fs::path(name).extension().string();
    if (std::find(endings.begin(), endings.end(), ending) == endings.end()) continue;
    if (named.size() < kMostNamed)
      named.push_back(excerpt(name));
    else
      ++others;
  }
  if (named.empty())
    return fmt::format("{}; {} has no file that ends in {}", message, where,
                       fmt::join(endings, ", "));
  return fmt::format("{}; {} has {}{}", message, where, fmt::join(named, ", "),
                     others > 0 ? fmt::format(" and {} more", others) : "");
}

}  // namespace melflow
