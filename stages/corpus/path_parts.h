// The parts of paths that labels, splits and groups are named after, and patterns for paths: '*'
// and '?' match within one component, '**' any number of folders, or at the end everything in them.
// Every other character, including '[' and '\', matches itself, since names contain them: "track
// [1].wav". Matching takes time proportional to the product of the lengths at most.
#pragma once

#include <optional>
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
  /// Returns `listed`, absolute or relative to the root, without "./", "../" and doubled '/'. An
  /// absolute path below the root, as written or with its links resolved, becomes relative.
  [[nodiscard]] std::string operator()(std::string_view listed) const;

 private:
  std::vector<std::string> roots_;  // absolute, ending in '/'
};

/// A pattern for paths. Case does not matter, so that "*.wav" also matches "A.WAV".
class Glob {
 public:
  explicit Glob(std::string_view pattern);
  /// Whether the pattern matches the whole `path`, a relative one with '/' between components. A
  /// pattern without '/' is compared with the last component only.
  [[nodiscard]] bool matches(std::string_view path) const;
  /// Whether the pattern takes every name, or every hidden one: its last component is '*', '**' or
  /// '.*'.
  [[nodiscard]] bool takes_every_name() const;
  /// Whether the pattern has a name that begins with '.', as hidden files and folders do.
  [[nodiscard]] bool names_hidden() const;

 private:
  std::vector<std::string> parts_;
  std::optional<std::string> ending_;  // in lower case, where the pattern asks only for an ending
};

}  // namespace melflow
