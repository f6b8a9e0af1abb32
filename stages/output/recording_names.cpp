#include "stages/output/recording_names.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/stage/stage.h"

namespace melflow {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Removes an ending of a letter and up to four more letters or digits, if a name precedes it.
std::string_view without_ending(std::string_view path) {
  constexpr std::size_t kLongest = 5;
  const std::size_t dot = path.rfind('.');
  if (dot == path.npos || dot == 0 || path[dot - 1] == '/' || dot + 1 == path.size() ||
      path.size() - dot - 1 > kLongest)
    return path;
  const std::string_view ending = path.substr(dot + 1);
  const bool is_one =
      is_letter(ending.front()) &&
      std::all_of(ending.begin(), ending.end(), [](char c) { return is_letter(c) || is_digit(c); });
  return is_one ? path.substr(0, dot) : path;
}

std::string safe(std::string_view part, bool is_folder) {
  const bool has_dots_alone = part == "." || part == "..";
  std::string out;
  for (std::size_t at = 0; at < part.size();) {
    const std::size_t n = std::max<std::size_t>(utf8_length(part, at), 1);
    const std::string_view character = part.substr(at, n);
    const char c = character.front();
    at += n;
    const bool is_kept = is_letter(c) || is_digit(c) ||
                         std::string_view("_-=+,@").find(c) != std::string_view::npos ||
                         static_cast<unsigned char>(c) >= 0x80 ||
                         (c == '.' && is_folder && !has_dots_alone);
    if (is_kept && !is_white_space(character))
      out += character;
    else
      for (const char byte : character)
        out += fmt::format("%{:02X}", static_cast<unsigned char>(byte));
  }
  return out;
}

}  // namespace

std::string as_recording_name(std::string_view path) {
  std::string out;
  while (true) {
    const std::size_t slash = path.find('/');
    const bool is_folder = slash != path.npos;
    const std::string part = safe(path.substr(0, slash), is_folder);
    if (!part.empty()) out += (out.empty() ? "" : "/") + part;
    if (!is_folder) return out;
    path.remove_prefix(slash + 1);
  }
}

std::vector<std::string> recording_names(const std::vector<std::string>& paths) {
  std::unordered_map<std::string, int> count;
  for (const std::string& path : paths) ++count[as_recording_name(without_ending(path))];
  std::unordered_set<std::string> taken;
  std::vector<std::string> out;
  out.reserve(paths.size());
  for (const std::string& path : paths) {
    std::string name = as_recording_name(without_ending(path));
    if (count[name] > 1) name = as_recording_name(path);
    std::string unique = name;
    for (int n = 1; !taken.insert(unique).second; ++n) unique = fmt::format("{}-{}", name, n);
    out.push_back(std::move(unique));
  }
  return out;
}

std::vector<std::string> recording_names(const RunContext& run) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < run.source.count(); ++i) paths.push_back(run.source.name(i));
  return recording_names(paths);
}

void check_names(const RunContext& run, const std::vector<std::string>& names,
                 const std::string& option, const std::function<bool(const std::string&)>& is_one) {
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_word = !names[i].empty() && is_one(names[i]);
    if (!is_word || !seen.insert(names[i]).second)
      throw RunError(
          fmt::format("{}: {} has the name '{}', which {}; each utterance needs a word of its own",
                      option, excerpt(run.source.name(i), kLongestPath), excerpt(names[i]),
                      is_word ? "another one has" : "is no word"));
  }
}

}  // namespace melflow
