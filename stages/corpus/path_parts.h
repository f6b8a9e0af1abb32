// Parts of paths that labels, splits and groups are named after.
#pragma once

#include <string_view>

namespace melflow {

/// As it is listed: without what `find .` puts in front.
inline std::string_view plain(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  return path;
}

/// The first component of a relative path that has several; "" otherwise.
inline std::string_view first_folder(std::string_view path) {
  const std::size_t slash = path.starts_with('/') ? path.npos : path.find('/');
  return slash == path.npos ? "" : path.substr(0, slash);
}

/// The name of the folder that a path is in.
inline std::string_view parent_folder(std::string_view path) {
  const std::size_t last = path.rfind('/');
  if (last == path.npos) return "";
  const std::string_view folder = path.substr(0, last);
  const std::size_t slash = folder.rfind('/');
  return slash == folder.npos ? folder : folder.substr(slash + 1);
}

}  // namespace melflow
