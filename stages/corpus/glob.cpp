#include "stages/corpus/glob.h"

#include <fnmatch.h>

#include <algorithm>

namespace melflow {
namespace {

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    if (slash > 0 && path.substr(0, slash) != ".") parts.emplace_back(path.substr(0, slash));
    if (slash == path.npos) break;
    path.remove_prefix(slash + 1);
  }
  return parts;
}

bool match(const std::vector<std::string>& pattern, std::size_t p,
           const std::vector<std::string>& path, std::size_t i) {
  for (; p < pattern.size(); ++p, ++i) {
    if (pattern[p] == "**") {
      for (std::size_t skip = i; skip <= path.size(); ++skip)
        if (match(pattern, p + 1, path, skip)) return true;
      return false;
    }
    if (i >= path.size() || fnmatch(pattern[p].c_str(), path[i].c_str(), FNM_CASEFOLD) != 0)
      return false;
  }
  return i == path.size();
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// ".wav" for "*.WAV"; nothing for patterns of another form or with letters beyond ASCII.
std::optional<std::string> ending_of(const std::string& pattern) {
  if (pattern.empty() || pattern[0] != '*') return std::nullopt;
  std::string out = pattern.substr(1);
  for (char& c : out) {
    if (c < 0x20 || c == 0x7F || std::string_view("*?[]\\").find(c) != std::string_view::npos)
      return std::nullopt;
    c = lower(c);
  }
  return out;
}

}  // namespace

Glob::Glob(std::string_view pattern) : parts_(split(pattern)) {
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
  if (parts_.size() == 2 && parts_[0] == "**" && parts_[1] != "**") {
    const std::size_t slash = path.rfind('/');
    const std::string name(slash == path.npos ? path : path.substr(slash + 1));
    return fnmatch(parts_[1].c_str(), name.c_str(), FNM_CASEFOLD) == 0;
  }
  return match(parts_, 0, split(path), 0);
}

}  // namespace melflow
