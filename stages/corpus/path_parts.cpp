#include "stages/corpus/path_parts.h"

#include <filesystem>

#include "stages/manifest.h"

namespace melflow {
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

}  // namespace melflow
