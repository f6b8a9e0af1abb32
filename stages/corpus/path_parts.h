// The parts of paths that give labels, splits and groups their names, and patterns for paths: '*'
// and '?' within one component, '**' for any number of folders, at the end for all that is in them.
// Every other character, '[' and '\' too, is itself, since names have them: "track [1].wav". Takes
// time in proportion to the lengths of pattern and path multiplied, at most.
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
  /// `listed`: absolute or relative to the root. Without "./", "../" and doubled '/'; without the
  /// root, as written or with its links resolved, where it is an absolute path below that.
  [[nodiscard]] std::string operator()(std::string_view listed) const;

 private:
  std::vector<std::string> roots_;  // absolute, ending in '/'
};

/// Case does not matter, so that "*.wav" also finds "A.WAV".
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
  std::optional<std::string> ending_;  // in lower case, where the pattern asks for nothing else
};

}  // namespace melflow
