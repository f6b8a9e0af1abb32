#include "stages/corpus/path_parts.h"

#include <algorithm>
#include <filesystem>

#include "pipeline/base/text.h"
#include "stages/manifest.h"

namespace melflow {
namespace {

template <class Part>
std::vector<Part> split(std::string_view path) {
  std::vector<Part> parts;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    if (slash > 0 && path.substr(0, slash) != ".") parts.emplace_back(path.substr(0, slash));
    if (slash == path.npos) break;
    path.remove_prefix(slash + 1);
  }
  return parts;
}

// Whether a pattern with stars, each for any number of items, matches `size` items. After a
// mismatch only the last star takes more items: earlier ones need not change
// (https://research.swtch.com/glob). `step(p, i)`: how many items, from number `i` on, the p-th
// part of the pattern takes; 0: none match. `more(i)`: how many items a star takes at once.
template <class IsStar, class Step, class More>
bool match(std::size_t parts, std::size_t size, const IsStar& is_star, const Step& step,
           const More& more) {
  std::size_t p = 0, i = 0, star = parts, star_end = 0;
  while (p < parts || i < size) {
    if (p < parts && is_star(p)) {
      star = p++;
      star_end = i;
      continue;
    }
    if (const std::size_t taken = p < parts && i < size ? step(p, i) : 0; taken > 0) {
      ++p;
      i += taken;
    } else if (star < parts && star_end < size) {
      p = star + 1;
      i = star_end += more(star_end);
    } else {
      return false;
    }
  }
  return true;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool matches_name(std::string_view pattern, std::string_view name) {
  const auto character = [name](std::size_t i) {
    return std::max<std::size_t>(utf8_length(name, i), 1);  // an invalid byte counts as one
  };
  return match(
      pattern.size(), name.size(), [&](std::size_t p) { return pattern[p] == '*'; },
      [&](std::size_t p, std::size_t i) -> std::size_t {
        return pattern[p] == '?' ? character(i) : lower(pattern[p]) == lower(name[i]) ? 1 : 0;
      },
      character);
}

// Returns ".wav" for "*.WAV"; nothing for patterns of another form.
std::optional<std::string> ending_of(const std::string& pattern) {
  if (pattern.find_last_of("*?") != 0 || pattern[0] != '*') return std::nullopt;
  std::string out = pattern.substr(1);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

}  // namespace

namespace fs = std::filesystem;

BelowRoot::BelowRoot(const std::string& root) {
  if (root.empty()) return;
  roots_ = {(fs::absolute(root) / "").lexically_normal().string(), whole_root(root)};
}

std::string BelowRoot::operator()(std::string_view listed) const {
  listed = plain(listed);
  const bool is_normal = !listed.starts_with('/') && !listed.starts_with("..") &&
                         listed.find("//") == listed.npos && listed.find("/.") == listed.npos;
  if (is_normal) return std::string(listed);
  const fs::path path(listed);
  for (const std::string& root : roots_)
    if (const std::string whole = (root / path).lexically_normal().string();
        whole.starts_with(root))
      return whole.substr(root.size());
  return path.lexically_normal().string();
}

Glob::Glob(std::string_view pattern) : parts_(split<std::string>(pattern)) {
  if (parts_.size() == 1 && parts_[0] != "**") parts_.insert(parts_.begin(), "**");
  if (parts_.size() == 2 && parts_[0] == "**" && parts_[1] != "**") ending_ = ending_of(parts_[1]);
}

bool Glob::takes_every_name() const {
  return !parts_.empty() &&
         (parts_.back() == "*" || parts_.back() == "**" || parts_.back() == ".*");
}

bool Glob::names_hidden() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const std::string& part) { return part.starts_with('.') && part != ".."; });
}

bool Glob::matches(std::string_view path) const {
  // For "**/*.wav", the usual case, the folders do not matter.
  if (ending_) {
    const std::size_t slash = path.rfind('/');
    const std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
    return name.size() >= ending_->size() &&
           std::equal(ending_->begin(), ending_->end(), name.end() - std::ssize(*ending_),
                      [](char wanted, char c) { return wanted == lower(c); });
  }
  const auto names = split<std::string_view>(path);
  return match(
      parts_.size(), names.size(), [this](std::size_t p) { return parts_[p] == "**"; },
      [&](std::size_t p, std::size_t i) -> std::size_t {
        return matches_name(parts_[p], names[i]) ? 1 : 0;
      },
      [](std::size_t) { return std::size_t{1}; });
}

}  // namespace melflow
