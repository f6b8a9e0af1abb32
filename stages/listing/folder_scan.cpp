#include "stages/listing/folder_scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pipeline/problem.h"

namespace melflow {
namespace {

bool any_matches(const std::vector<Glob>& globs, const std::string& path) {
  return std::any_of(globs.begin(), globs.end(), [&](const Glob& g) { return g.matches(path); });
}

}  // namespace

// The folders from the root down to here, to notice links that lead back.
struct FolderScan::Way {
  std::vector<std::pair<dev_t, ino_t>> folders;
};

FolderScan::FolderScan(Settings settings) : settings_(std::move(settings)) {
  for (const std::string& p : settings_.include) include_.emplace_back(p);
  for (const std::string& p : settings_.exclude) exclude_.emplace_back(p);
}

void FolderScan::run(const Found& found) const {
  const std::string& root = settings_.root;
  struct stat st {};
  if (stat(root.c_str(), &st) != 0 ||
      (S_ISDIR(st.st_mode) && eaccess(root.c_str(), R_OK | X_OK) != 0))
    throw RunError(fmt::format("{}: cannot look into the folder: {}; check file_list.root", root,
                               std::strerror(errno)));
  if (!S_ISDIR(st.st_mode))
    throw RunError(fmt::format("{}: is a file, file_list.root takes a folder", root));
  Way way{{{st.st_dev, st.st_ino}}};
  scan("", way, found);
}

bool FolderScan::wanted(const std::string& path) const {
  return any_matches(include_, path) && !any_matches(exclude_, path);
}

// What of one folder has to be looked at, by name; false where it cannot be opened.
bool FolderScan::list(const std::string& folder, std::vector<Entry>& out) const {
  const std::string here = settings_.root + "/" + folder;
  DIR* dir = opendir(here.c_str());
  if (dir == nullptr) return false;
  while (const dirent* e = (errno = 0, readdir(dir))) {
    if (std::strcmp(e->d_name, ".") == 0 || std::strcmp(e->d_name, "..") == 0) continue;
    bool is_folder = e->d_type == DT_DIR;
    if (e->d_type == DT_UNKNOWN || (e->d_type == DT_LNK && settings_.follow_links)) {
      struct stat st {};
      const int flags = settings_.follow_links ? 0 : AT_SYMLINK_NOFOLLOW;
      is_folder = fstatat(dirfd(dir), e->d_name, &st, flags) == 0 && S_ISDIR(st.st_mode);
    }
    if (is_folder || wanted(folder + e->d_name)) out.push_back({e->d_name, is_folder});
  }
  const int error = errno;
  closedir(dir);
  if (error != 0)
    throw RunError(fmt::format("{}: cannot be listed: {}", here, std::strerror(error)));
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return true;
}

// Depth first with sorted names is the order of the paths.
void FolderScan::scan(const std::string& folder, Way& way, const Found& found) const {
  std::vector<Entry> entries;
  if (!list(folder, entries)) return add_closed(folder, found);
  for (const Entry& e : entries) {
    const std::string path = folder + e.name;
    if (!e.is_folder || wanted(path)) found(folder, e.name);
    if (!e.is_folder) continue;
    struct stat st {};
    if (stat((settings_.root + "/" + path).c_str(), &st) != 0) {
      add_closed(path + "/", found);
      continue;
    }
    const std::pair<dev_t, ino_t> id{st.st_dev, st.st_ino};
    if (std::find(way.folders.begin(), way.folders.end(), id) != way.folders.end()) continue;
    way.folders.push_back(id);
    scan(path + "/", way, found);
    way.folders.pop_back();
  }
}

// A folder that cannot be entered is listed as it stands, once: reading it fails and says why.
// Where the user leaves it out, nothing is missing.
void FolderScan::add_closed(const std::string& folder, const Found& found) const {
  const std::string name = folder.substr(0, folder.size() - 1);
  if (wanted(name) || any_matches(exclude_, name)) return;
  found("", folder);
}

}  // namespace melflow
