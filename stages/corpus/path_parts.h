// The parts of paths that give labels, splits and groups their names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace melflow {

/// The path without the "./" that `find .` puts in front.
inline std::string_view plain(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  return path;
}

/// The first component of a relative path with several components; "" otherwise.
inline std::string_view first_folder(std::string_view path) {
  const std::size_t slash = path.starts_with('/') ? path.npos : path.find('/');
  return slash == path.npos ? "" : path.substr(0, slash);
}

/// The name of the folder that contains `path`, without the folders above it; "" where the path
/// has one component.
inline std::string_view parent_folder(std::string_view path) {
  const std::size_t last = path.rfind('/');
  if (last == path.npos) return "";
  const std::string_view folder = path.substr(0, last);
  const std::size_t slash = folder.rfind('/');
  return slash == folder.npos ? folder : folder.substr(slash + 1);
}

/// Makes the paths of a list relative to the root, however they are written.
class BelowRoot {
 public:
  /// `root`: as the user wrote it; "" for none.
  explicit BelowRoot(const std::string& root);
  /// `listed`: absolute or relative to the root. Without "./", "../" and doubled '/'; without the root, as
  /// written or with its links resolved, where it is an absolute path below that.
  [[nodiscard]] std::string operator()(std::string_view listed) const;

 private:
  std::vector<std::string> roots_;  // absolute, ending in '/'
};

}  // namespace melflow
