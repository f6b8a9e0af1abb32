// Finds a folder's disk among the mounts that the system lists (proc_pid_mountinfo(5)).
#include <filesystem>
#include <fstream>
#include <sstream>

#include "apps/bench/measurements.h"

namespace melflow {
namespace {

// Replaces the octal escapes by which that list writes spaces and similar characters.
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool is_below(const std::string& path, const std::string& mount) {
  return path.starts_with(mount) &&
         (mount.ends_with('/') || path.size() == mount.size() || path[mount.size()] == '/');
}

}  // namespace

Disk disk_of(const std::string& folder) {
  std::error_code ignored;
  const std::string path = std::filesystem::canonical(folder, ignored);
  Disk out;
  std::size_t longest = 0;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string skipped, mount;
    fields >> skipped >> skipped >> skipped >> skipped >> mount;
    mount = unescaped(mount);
    // Of several mounts at one path, the last one is visible.
    if (!is_below(path, mount) || mount.size() < longest) continue;
    while (fields >> skipped && skipped != "-") {
    }
    longest = mount.size();
    fields >> out.file_system >> out.device;
    out.device = unescaped(out.device);
  }
  return out;
}

}  // namespace melflow
