#include "stages/corpus/name_rule.h"

#include <algorithm>

#include <fmt/format.h>

#include "pipeline/text.h"
#include "stages/corpus/path_parts.h"

namespace melflow {

NameRule::NameRule(std::string text) : text_(std::move(text)) {
  if (is_pattern(text_)) pattern_.emplace(text_);
}

bool NameRule::is_pattern(std::string_view text) { return text.find('(') != text.npos; }

bool NameRule::is_column(std::string_view text) {
  return !text.empty() && text != kParentDir && text != kTopDir && !is_pattern(text);
}

std::string NameRule::problem(const std::string& text) {
  if (!is_pattern(text)) return {};
  // The library's parser goes a call deeper with every bracket.
  if (constexpr std::size_t kLongest = 1000; text.size() > kLongest)
    return fmt::format("a regular expression has at most {} bytes, not {}", kLongest, text.size());
  try {
    const std::regex pattern(text);
    if (pattern.mark_count() != 1)
      return fmt::format("'{}' has {} groups in ( ); it must have one, which marks the name", text,
                         pattern.mark_count());
  } catch (const std::regex_error& e) {
    return fmt::format(
        "'{}' is not a regular expression: {}; correct it, or write \\ before each special "
        "character that is to match itself",
        excerpt(text), e.what());
  }
  return {};
}

std::string_view NameRule::name_of(std::string_view path, std::string_view cell) const {
  if (text_ == kParentDir)
    return path.substr(0, path.rfind('/') == path.npos ? 0 : path.rfind('/'));
  if (text_ == kTopDir) return first_folder(path);
  if (!pattern_) return cell;
  std::cmatch match;
  if (!std::regex_search(path.data(), path.data() + path.size(), match, *pattern_)) return "";
  return {match[1].first, static_cast<std::size_t>(match[1].length())};
}

}  // namespace melflow
