#include "stages/corpus/archive_names.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/containers/archive.h"
#include "stages/corpus/path_parts.h"

namespace melflow {
namespace {

constexpr const char* kPattern = "{*?";
constexpr std::size_t kMost = 1'000'000;  // names of a pattern

// Returns where a pattern begins in a root; npos if a file or folder has the root's very name.
std::size_t pattern_in(const std::string& root) {
  std::error_code ignored;
  return std::filesystem::exists(root, ignored) ? root.npos : root.find_first_of(kPattern);
}

// Expands "000..128" to its numbers, with as many digits; returns nothing if the text is no range.
std::optional<std::vector<std::string>> range(const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == text.npos) return std::nullopt;
  const std::string first = text.substr(0, dots), last = text.substr(dots + 2);
  std::size_t from = 0, to = 0;
  const auto parse = [](const std::string& s, std::size_t& out) {
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), out);
    return error == std::errc() && end == s.data() + s.size();
  };
  if (!parse(first, from) || !parse(last, to) || to < from || to - from >= kMost)
    return std::nullopt;
  std::vector<std::string> out;
  for (std::size_t n = from; n <= to; ++n) out.push_back(fmt::format("{:0{}}", n, first.size()));
  return out;
}

// Adds the names that a pattern with { } stands for.
void expand(const std::string& root, const std::string& done, const std::string& rest,
            std::vector<std::string>& out) {
  const std::size_t open = rest.find('{');
  if (open == rest.npos) {
    out.push_back(done + rest);
    return;
  }
  const std::size_t close = rest.find('}', open);
  std::optional<std::vector<std::string>> choices;
  if (close != rest.npos) {
    const std::string inside = rest.substr(open + 1, close - open - 1);
    choices = range(inside);
    if (!choices && inside.find(',') != inside.npos) {
      choices.emplace();
      for (std::size_t at = 0; at <= inside.size();) {
        const std::size_t comma = std::min(inside.find(',', at), inside.size());
        choices->push_back(inside.substr(at, comma - at));
        at = comma + 1;
      }
    }
  }
  if (!choices || out.size() + choices->size() > kMost)
    throw RunError(fmt::format(
        "{}: write {{000..128}} for the numbers from 000 to 128, or {{a,b}} for a and b", root));
  for (const std::string& one : *choices)
    expand(root, fmt::format("{}{}{}", done, rest.substr(0, open), one), rest.substr(close + 1),
           out);
}

}  // namespace

bool names_archives(const std::string& root) {
  std::error_code ignored;
  return is_archive_name(root) && !std::filesystem::is_directory(root, ignored);
}

std::string archive_base(const std::string& root) {
  const std::size_t pattern = pattern_in(root);
  if (pattern == root.npos || !names_archives(root)) return root;
  const std::size_t slash = root.rfind('/', pattern);
  return slash == root.npos ? "." : root.substr(0, std::max<std::size_t>(1, slash));
}

std::vector<std::string> archives_of(const std::string& root) {
  const std::size_t pattern = pattern_in(root);
  if (pattern == root.npos) return {""};
  const std::string folder = archive_base(root);
  const std::size_t slash = root.rfind('/', pattern);
  std::vector<std::string> names, out;
  expand(root, "", root.substr(slash == root.npos ? 0 : slash + 1), names);
  for (const std::string& name : names) {
    if (name.find_first_of("*?") == name.npos) {
      out.push_back(name);
      continue;
    }
    if (name.find('/') != name.npos)
      throw RunError(fmt::format("{}: * and ? stand for archives of one folder", root));
    const auto before = std::ssize(out);
    const Glob glob(name);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
      if (const std::string file = entry.path().filename();
          glob.matches(file) && entry.is_regular_file(error))
        out.push_back(file);
    if (std::ssize(out) == before)
      throw RunError(fmt::format("{}/{}: there is no such archive", folder, name));
    std::sort(out.begin() + before, out.end());
  }
  return out;
}

}  // namespace melflow
