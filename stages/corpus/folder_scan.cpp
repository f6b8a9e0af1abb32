#include "stages/corpus/folder_scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/files/packing.h"

namespace melflow {
namespace {

constexpr std::size_t kMostEndings = 100, kMostShown = 8;
constexpr std::size_t kLongestEnding = 10;  // longer ones are no file type [bytes]

std::string ending_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos || dot == 0 || name.size() - dot > kLongestEnding) return NotTaken::kOther;
  return std::string(name.substr(dot));
}

bool is_hidden_name(std::string_view name) { return name.starts_with('.'); }
bool is_hidden(std::string_view path) {
  return is_hidden_name(path) || path.find("/.") != path.npos;
}

// Whether the name is that of a folder or of a link to one.
bool leads_to_folder(int dir, const char* name) {
  struct stat st {};
  return fstatat(dir, name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

}  // namespace

void NotTaken::add(std::string_view name) {
  const std::string ending = ending_of(name);
  const bool is_known = counts_.size() < kMostEndings || counts_.contains(ending);
  ++counts_[is_known ? ending : kOther];
}

std::string NotTaken::text() const {
  std::vector<std::pair<std::string, std::size_t>> all(counts_.begin(), counts_.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out;
  const auto name = [&out](std::size_t count, std::string_view what) {
    if (count > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, what);
  };
  std::size_t others = 0, shown = 0, hidden = 0, linked = 0;
  for (const auto& [ending, count] : all) {
    if (ending == kHidden) {
      hidden = count;
    } else if (ending == kLinkedFolder) {
      linked = count;
    } else if (ending == kOther || shown == kMostShown) {
      others += count;
    } else {
      name(count, excerpt(ending));
      ++shown;
    }
  }
  name(others, kOther);
  name(hidden, fmt::format("{} (names that begin with '.')", kHidden));
  name(linked, fmt::format("{}{} (searched with follow_links: true)", kLinkedFolder,
                           linked == 1 ? "" : "s"));
  return out;
}

// The folders from the root to the present one, by which links that lead back are found.
struct FolderScan::Way {
  std::vector<std::pair<dev_t, ino_t>> folders;
  NotTaken not_taken;
};

FolderScan::FolderScan(Settings settings) : settings_(std::move(settings)) {
  for (const std::string& p : settings_.include) include_.emplace_back(p);
  for (const std::string& p : settings_.exclude) exclude_.emplace_back(p);
  is_used_.resize(exclude_.size());
}

NotTaken FolderScan::run(const Visit& visit) const {
  const std::string& root = settings_.root;
  const auto fail = [&root](int error) {
    throw RunError(fmt::format("{}: cannot list the folder: {}; check the option root", root,
                               std::strerror(error)));
  };
  struct stat st {};
  if (stat(root.c_str(), &st) != 0) fail(errno);
  if (!S_ISDIR(st.st_mode)) throw RunError(root_is_file(root));
  if (eaccess(root.c_str(), R_OK | X_OK) != 0) fail(errno);
  std::vector<Entry> entries;
  Way way{{{st.st_dev, st.st_ino}}, {}};
  if (const int error = list("", entries, way.not_taken); error != 0) fail(error);
  scan("", entries, way, visit);
  return std::move(way.not_taken);
}

std::string root_is_file(const std::string& root) {
  if (const Packing* packing = packing_of_file(root))
    return fmt::format("{}: this is {}, which root does not take; {}", root, packing->what,
                       advice_on(*packing, root));
  return root +
         ": this is a file, but root takes a folder; choose one recording by include, or give a "
         "list of recordings as manifest";
}

bool FolderScan::wanted(const std::string& path) const {
  const bool hidden = is_hidden(path);
  return !is_left_out(path) && std::any_of(include_.begin(), include_.end(), [&](const Glob& g) {
    return (!hidden || g.names_hidden()) && g.matches(path);
  });
}

bool FolderScan::searches_hidden() const {
  return std::any_of(include_.begin(), include_.end(), std::mem_fn(&Glob::names_hidden));
}

bool FolderScan::is_wanted_folder(const std::string& path) const {
  return !is_left_out(path) && std::any_of(include_.begin(), include_.end(), [&](const Glob& g) {
    return !g.takes_every_name() && g.matches(path);
  });
}

// After a match, continues only with patterns that have matched nothing yet, to mark them as used.
bool FolderScan::is_left_out(const std::string& path, bool is_folder) const {
  bool out = false;
  for (std::size_t i = 0; i < exclude_.size(); ++i) {
    if ((out && is_used_[i]) || (is_folder && exclude_[i].takes_every_name())) continue;
    if (exclude_[i].matches(path)) out = is_used_[i] = true;
  }
  return out;
}

std::vector<std::string> FolderScan::unused_excludes() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < exclude_.size(); ++i)
    if (!is_used_[i]) out.push_back(settings_.exclude[i]);
  return out;
}

// Lists the folders in one folder, and the files that match, by name. Returns errno where the
// folder cannot be listed to its end, else 0.
int FolderScan::list(const std::string& folder, std::vector<Entry>& out,
                     NotTaken& not_taken) const {
  DIR* dir = opendir((settings_.root + "/" + folder).c_str());
  if (dir == nullptr) return errno;
  while (const dirent* e = (errno = 0, readdir(dir))) {
    if (std::strcmp(e->d_name, ".") == 0 || std::strcmp(e->d_name, "..") == 0) continue;
    Entry entry = entry_of(dirfd(dir), folder, e->d_name, e->d_type);
    const bool is_unsearched = is_hidden_name(e->d_name) && !searches_hidden();
    if (entry.is_folder && is_left_out(folder + e->d_name, true)) continue;
    if (!is_unsearched && (entry.is_folder || wanted(folder + e->d_name)))
      out.push_back(std::move(entry));
    else if (is_left_out(folder + e->d_name))
      continue;
    else if (is_hidden_name(e->d_name))
      not_taken.add(NotTaken::kHidden, 1);
    else if ((e->d_type == DT_LNK || e->d_type == DT_UNKNOWN) &&
             leads_to_folder(dirfd(dir), e->d_name))
      not_taken.add(NotTaken::kLinkedFolder, 1);
    else
      not_taken.add(e->d_name);
  }
  const int error = errno;
  closedir(dir);
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return error;
}

FolderScan::Entry FolderScan::entry_of(int dir, const std::string& folder, const char* name,
                                       unsigned char type) const {
  if (type != DT_UNKNOWN && (type != DT_LNK || !settings_.follow_links))
    return {name, type == DT_DIR};
  struct stat st {};
  if (fstatat(dir, name, &st, settings_.follow_links ? 0 : AT_SYMLINK_NOFOLLOW) == 0)
    return {name, S_ISDIR(st.st_mode)};
  // A link that leads nowhere or in a circle is no folder. Where stat fails otherwise, an entry
  // counts as a folder unless its name matches as a file.
  if (errno == ENOENT || errno == ELOOP || wanted(folder + name)) return {name, false};
  return {name, true, errno};
}

// A depth-first walk over sorted names visits paths in their order.
void FolderScan::scan(const std::string& folder, const std::vector<Entry>& entries, Way& way,
                      const Visit& visit) const {
  for (const Entry& e : entries) {
    if (!e.is_folder) {
      visit({folder, e.name});
      continue;
    }
    const std::string path = folder + e.name, below = path + "/";
    struct stat st {};
    int error = e.error;
    if (error == 0 && stat((settings_.root + "/" + path).c_str(), &st) != 0) error = errno;
    const std::pair<dev_t, ino_t> id{st.st_dev, st.st_ino};
    const bool is_circle =
        error == 0 && std::find(way.folders.begin(), way.folders.end(), id) != way.folders.end();
    std::vector<Entry> inside;
    if (error == 0 && !is_circle) error = list(below, inside, way.not_taken);
    if (error != 0 ? wanted(path) : is_wanted_folder(path))
      visit({folder, e.name, true, error});
    else if (error != 0 && !is_left_out(path))
      visit({"", below, true, error});
    if (error != 0 || is_circle) continue;
    way.folders.push_back(id);
    scan(below, inside, way, visit);
    way.folders.pop_back();
  }
}

}  // namespace melflow
