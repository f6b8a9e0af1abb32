#include "stages/containers/archive.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <shared_mutex>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/containers/archive_index.h"

namespace melflow {
namespace {

bool ends_in(std::string_view path, std::string_view ending) {
  return path.size() > ending.size() &&
         strncasecmp(path.data() + path.size() - ending.size(), ending.data(), ending.size()) == 0;
}

// An archive that cannot be read, maybe only for a moment: what is in it is not known.
class Unreadable final : public Container {
 public:
  Unreadable(std::string path, std::string why) : path_(std::move(path)), why_(std::move(why)) {}
  [[nodiscard]] FileStamp stamp(const std::string&) const override { return {}; }
  [[nodiscard]] bool is_known() const override { return false; }
  void locate(const std::string&, FileRef& file) const override {
    file.part = FilePart{.file = path_, .problem = why_};
  }

 private:
  std::string path_, why_;
};

// The archives that this process has looked into.
struct Opened {
  std::shared_mutex mutex;
  std::map<std::string, std::shared_ptr<const Archive>, std::less<>> archives;
};
Opened& opened() {
  static Opened of_process;
  return of_process;
}

}  // namespace

bool is_archive_name(std::string_view path) {
  return ends_in(path, ".tar") || ends_in(path, ".zip");
}

Archive::Archive(std::string path) : path_(std::move(path)) {
  stamp_ = stamp_of(path_);
  const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) throw RunError(fmt::format("{}: cannot be read: {}", path_, std::strerror(errno)));
  if (stamp_.size < 0) throw RunError(path_ + ": is no file");
  is_zip_ = ends_in(path_, ".zip");
  ArchiveBytes bytes(fd.get(), static_cast<std::uint64_t>(stamp_.size), path_);
  if (is_zip_)
    ZipIndex(*this, bytes).read();
  else
    TarIndex(*this, bytes).read();
  sort();
}

void Archive::add(std::string_view name, Member member, std::string problem) {
  while (name.starts_with("./")) name.remove_prefix(2);
  while (name.starts_with('/')) name.remove_prefix(1);
  member.name = names_.size();
  names_.append(name.substr(0, name.find('\0'))).push_back('\0');
  if (!problem.empty()) {
    if (problems_.empty() || problems_.back() != problem) problems_.push_back(std::move(problem));
    member.problem = static_cast<std::uint32_t>(problems_.size());
  }
  members_.push_back(member);
}

// By name. Of several members of a name the last one counts, as when they are unpacked.
void Archive::sort() {
  const auto less = [this](const Member& a, const Member& b) { return text(a) < text(b); };
  if (!std::is_sorted(members_.begin(), members_.end(), less))
    std::stable_sort(members_.begin(), members_.end(), less);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (kept > 0 && text(members_[kept - 1]) == text(members_[i])) --kept;
    members_[kept++] = members_[i];
  }
  if (const std::size_t twice = members_.size() - kept; twice > 0)
    remarks_.push_back(fmt::format(
        "{}: {} with the name of a later one; the last of a name counts, as when it is unpacked",
        path_, twice == 1 ? "a member is" : fmt::format("{} members are", twice)));
  members_.resize(kept);
}

const Archive::Member* Archive::find(std::string_view name) const {
  const auto it =
      std::lower_bound(members_.begin(), members_.end(), name,
                       [this](const Member& m, std::string_view n) { return text(m) < n; });
  return it == members_.end() || text(*it) != name ? nullptr : &*it;
}

std::string Archive::problem(std::size_t i) const {
  return members_[i].problem == 0 ? "" : problems_[members_[i].problem - 1];
}

bool Archive::is_current() const { return stamp_of(path_) == stamp_; }

// The time is that of the archive: those of members are often all the same.
FileStamp Archive::stamp(const std::string& name) const {
  const Member* m = find(name);
  return m == nullptr ? FileStamp{}
                      : FileStamp{static_cast<std::int64_t>(m->size), stamp_.modified};
}

void Archive::locate(const std::string& name, FileRef& file) const {
  const Member* m = find(name);
  if (m == nullptr) {
    file.part = FilePart{.file = path_, .problem = "is not in the archive"};
    return;
  }
  file.size = m->size;
  file.part = FilePart{.file = path_,
                       .begin = m->begin,
                       .stored = m->stored,
                       .is_deflated = m->is_deflated,
                       .size = stamp_.size,
                       .modified = stamp_.modified,
                       .problem = problem(static_cast<std::size_t>(m - members_.data()))};
  if (is_zip_) file.part->crc = m->crc;
}

std::shared_ptr<const Archive> archive_at(const std::string& path) {
  Opened& all = opened();
  {
    const std::shared_lock lock(all.mutex);
    const auto it = all.archives.find(path);
    if (it != all.archives.end() && it->second->is_current()) return it->second;
  }
  auto read = std::make_shared<const Archive>(path);
  const std::lock_guard lock(all.mutex);
  return all.archives[path] = std::move(read);
}

ContainedItem archived_item(const std::string& path) {
  for (std::size_t slash = 0; (slash = path.find('/', slash + 1)) != path.npos;) {
    if (slash < 4 || path[slash - 4] != '.' || slash + 1 == path.size()) continue;
    const std::string file = path.substr(0, slash);
    struct stat st {};
    if (!is_archive_name(file) || stat(file.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
    try {
      return {archive_at(file), path.substr(slash + 1)};
    } catch (const RunError& e) {
      return {std::make_shared<const Unreadable>(file, e.what()), path.substr(slash + 1)};
    }
  }
  return {};
}

bool inflate_member(const std::byte* packed, std::size_t size, std::byte* out,
                    std::size_t out_size) {
  using Inflater =
      std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>;
  static thread_local const Inflater of_thread(libdeflate_alloc_decompressor(),
                                               &libdeflate_free_decompressor);
  std::size_t made = 0;
  return of_thread &&
         libdeflate_deflate_decompress(of_thread.get(), packed, size, out, out_size, &made) ==
             LIBDEFLATE_SUCCESS &&
         made == out_size;
}

std::uint32_t crc_of(const std::byte* bytes, std::size_t size) {
  return libdeflate_crc32(0, bytes, size);
}

}  // namespace melflow
