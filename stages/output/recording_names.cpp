#include "stages/output/recording_names.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

namespace melflow {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Without an ending of a letter and up to four more letters or digits, where a name is before it.
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
  for (const char c : part)
    if (is_letter(c) || is_digit(c) ||
        std::string_view("_-=+,@").find(c) != std::string_view::npos ||
        static_cast<unsigned char>(c) >= 0x80 || (c == '.' && is_folder && !has_dots_alone))
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out;
}

std::string named(std::string_view path) {
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

}  // namespace

std::vector<std::string> recording_names(const std::vector<std::string>& paths) {
  std::unordered_map<std::string, int> count;
  for (const std::string& path : paths) ++count[named(without_ending(path))];
  std::unordered_set<std::string> taken;
  std::vector<std::string> out;
  out.reserve(paths.size());
  for (const std::string& path : paths) {
    std::string name = named(without_ending(path));
    if (count[name] > 1) name = named(path);
    std::string unique = name;
    for (int n = 1; !taken.insert(unique).second; ++n) unique = fmt::format("{}-{}", name, n);
    out.push_back(std::move(unique));
  }
  return out;
}

}  // namespace melflow
