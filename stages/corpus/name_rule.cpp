#include "stages/corpus/name_rule.h"

#include <re2/re2.h>

#include <utility>

#include <fmt/format.h>

#include "pipeline/base/text.h"
#include "stages/corpus/files_beside.h"
#include "stages/corpus/path_parts.h"
#include "stages/corpus/text_lines.h"

namespace melflow {
namespace {

// Matching takes time proportional to the path's length, and limited memory.
std::shared_ptr<const RE2> compiled(const std::string& text, RE2::Options::Encoding encoding) {
  RE2::Options options;
  options.set_encoding(encoding);
  options.set_log_errors(false);
  return std::make_shared<const RE2>(text, options);
}

// Returns advice on an expression that RE2 rejects.
const char* advice(const RE2& pattern) {
  const std::string& part = pattern.error_arg();
  if (part.starts_with("(?=") || part.starts_with("(?!") || part.starts_with("(?<"))
    return "lookaheads and lookbehinds, (?= (?! (?<= (?<!, are not known (docs/pipelines.md)";
  if (part.size() == 2 && part[0] == '\\' && part[1] >= '1' && part[1] <= '9')
    return "backreferences, \\1 to \\9, are not known (docs/pipelines.md)";
  return "correct it, or write \\ before each special character that is to match itself";
}

}  // namespace

NameRule::NameRule(std::string text) : text_(std::move(text)) {
  if (!is_pattern(text_)) return;
  pattern_ = compiled(text_, RE2::Options::EncodingUTF8);
  bytes_ = compiled(text_, RE2::Options::EncodingLatin1);
}

bool NameRule::is_pattern(std::string_view text) { return text.find('(') != text.npos; }

bool NameRule::is_beside(std::string_view text) {
  return text.starts_with('.') && !is_pattern(text);
}

bool NameRule::is_column(std::string_view text) {
  return !text.empty() && text != kParentDir && text != kTopDir && !is_pattern(text) &&
         !is_beside(text);
}

std::string NameRule::problem(const std::string& text) {
  if (is_beside(text)) return FilesBeside::problem(text);
  if (!is_pattern(text)) return {};
  const auto pattern = compiled(text, RE2::Options::EncodingUTF8);
  if (!pattern->ok())
    return fmt::format("'{}' is not a regular expression: {}; {}", excerpt(text), pattern->error(),
                       advice(*pattern));
  if (const int groups = pattern->NumberOfCapturingGroups(); groups != 1)
    return fmt::format("'{}' has {} groups in ( ); it must have one, which marks the name",
                       excerpt(text), groups);
  return {};
}

std::string_view NameRule::name_of(std::string_view path, std::string_view cell) const {
  if (text_ == kParentDir)
    return path.substr(0, path.rfind('/') == path.npos ? 0 : path.rfind('/'));
  if (text_ == kTopDir) return first_folder(path);
  if (!pattern_) return cell;
  re2::StringPiece found[2];
  const RE2& pattern = is_utf8(path) ? *pattern_ : *bytes_;
  if (!pattern.Match({path.data(), path.size()}, 0, path.size(), RE2::UNANCHORED, found, 2))
    return "";
  return {found[1].data(), found[1].size()};
}

}  // namespace melflow
