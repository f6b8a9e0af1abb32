#include "stages/containers/archive.h"

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

#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/containers/archive_index.h"
#include "stages/files/inflater.h"
#include "stages/files/temporary_file.h"
#include "stages/files/whole_io.h"

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
  FileStamp locate(const std::string&, FileRef& file) const override {
    file.part = FilePart{.file = path_, .problem = why_};
    return {};
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

struct stat state_of(int fd, const std::string& path) {
  struct stat out {};
  if (fstat(fd, &out) != 0)
    throw RunError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return out;
}

// A member's name without the "/", "./" and "//" that say nothing.
std::string as_listed(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('/'));
    name.remove_prefix(std::min(part.size() + 1, name.size()));
    if (part.empty() || part == ".") continue;
    if (!out.empty()) out += '/';
    out += part;
  }
  return out;
}

bool is_gzip_name(std::string_view path) {
  return ends_in(path, ".tar.gz") || ends_in(path, ".tgz");
}

}  // namespace

bool is_archive_name(std::string_view path) {
  return ends_in(path, ".tar") || ends_in(path, ".zip") || is_gzip_name(path);
}

Archive::Archive(std::string path) : path_(std::move(path)), file_(path_) {
  const UniqueFd fd(InputFile(path_).release());
  struct stat st = state_of(fd.get(), path_);
  state_ = FileState(st);
  modified_ = stamp_of(st).modified;
  is_zip_ = ends_in(path_, ".zip") || ends_in(path_, ".npz");
  if (is_gzip_name(path_)) {
    unpack(fd.get(), static_cast<std::uint64_t>(st.st_size));
    st = state_of(unpacked_.get(), path_);
  }
  state_of_file_ = FileState(st);
  ArchiveBytes bytes(unpacked_ ? unpacked_.get() : fd.get(), static_cast<std::uint64_t>(st.st_size),
                     path_);
  if (is_zip_)
    ZipIndex(*this, bytes).read();
  else
    TarIndex(*this, bytes).read();
  sort();
}

void Archive::unpack(int fd, std::uint64_t size) {
  constexpr std::size_t kMagic = 2;
  ArchiveBytes bytes(fd, size, path_);
  const auto magic = bytes.at(0, kMagic);
  if (!Inflater::is_gzip({reinterpret_cast<const char*>(magic.data()), magic.size()}))
    bytes.refuse("a file packed by gzip");
  unpacked_ = temporary_file({});
  int error = unpacked_ ? 0 : errno;
  std::uint64_t at = 0;
  const auto keep = [&](std::span<const std::byte> piece) {
    error = write_whole(unpacked_.get(), piece.data(), piece.size(), at);
    at += piece.size();
    return error == 0;
  };
  Inflater inflater(Inflater::Format::gzip);
  std::string packed(1 << 20, '\0');
  std::uint64_t taken = 0;
  for (bool is_right = true; is_right && error == 0;) {
    const ssize_t n = ::read(fd, packed.data(), packed.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw RunError(fmt::format("{}: cannot be read: {}", path_, std::strerror(errno)));
    if (n == 0) break;
    is_right = inflater.take({packed.data(), static_cast<std::size_t>(n)}, keep);
    taken += static_cast<std::uint64_t>(n);
  }
  if (error != 0)
    throw RunError(fmt::format(
        "{}: cannot be unpacked into a temporary file: {}; set TMPDIR to a folder with room for "
        "all that is in it, or unpack it (gunzip) and name the .tar",
        path_, std::strerror(error)));
  if (!inflater.is_whole()) {
    remarks_.push_back(fmt::format(
        "{}: is damaged at byte {} or before; members may be wrong, and what follows is "
        "missing{}",
        path_, taken, cure_of_archive(path_)));
    add_damage(at, at);
  }
  remarks_.push_back(fmt::format(
      "{}: was unpacked into a temporary file of {} bytes, as every run does; gunzip it once to "
      "save the time",
      path_, at));
  file_ = fmt::format("/proc/self/fd/{}", unpacked_.get());
}

void Archive::add(std::string_view name, Member member, std::string problem) {
  std::string path = as_listed(name.substr(0, name.find('\0')));
  if (path.size() > kLongestPath) {  // no system has such a file; many would take much memory
    constexpr std::size_t kKept = 100;
    problem = fmt::format("its name has {} bytes, and {} is the most that a system takes",
                          path.size(), kLongestPath);
    path = fmt::format("{}...@{}", path.substr(0, kKept), member.begin);
  }
  member.name = names_.size();
  names_.append(path).push_back('\0');
  if (!problem.empty()) {
    if (problems_.empty() || problems_.back() != problem) problems_.push_back(std::move(problem));
    member.problem = static_cast<std::uint32_t>(problems_.size()) & 0x7fffffffU;
  }
  members_.push_back(member);
}

// By name. Of several members of a name the last one counts, as when they are unpacked.
void Archive::sort() {
  const auto less = [this](const Member& a, const Member& b) { return text(a) < text(b); };
  if (!std::is_sorted(members_.begin(), members_.end(), less))
    std::stable_sort(members_.begin(), members_.end(), less);
  std::size_t kept = 0;
  for (const Member& member : members_) {
    if (kept > 0 && text(members_[kept - 1]) == text(member)) --kept;
    members_[kept++] = member;
  }
  if (const std::size_t twice = members_.size() - kept; twice > 0)
    remarks_.push_back(fmt::format(
        "{}: {} with the name of a later one; the last of a name counts, as when it is unpacked",
        path_, twice == 1 ? "a member is" : fmt::format("{} members are", twice)));
  members_.resize(kept);
}

// Members are mostly asked for one after the other.
const Archive::Member* Archive::find(std::string_view name) const {
  const std::size_t last = found_.load(std::memory_order_relaxed);
  for (std::size_t i = last; i < std::min(last + 2, members_.size()); ++i)
    if (text(members_[i]) == name) {
      if (i != last) found_.store(i, std::memory_order_relaxed);
      return &members_[i];
    }
  const auto it =
      std::lower_bound(members_.begin(), members_.end(), name,
                       [this](const Member& m, std::string_view n) { return text(m) < n; });
  if (it == members_.end() || text(*it) != name) return nullptr;
  found_.store(static_cast<std::size_t>(it - members_.begin()), std::memory_order_relaxed);
  return &*it;
}

std::string Archive::problem(std::size_t i) const {
  return members_[i].problem == 0 ? "" : problems_[members_[i].problem - 1];
}

bool Archive::is_current() const {
  struct stat st {};
  return stat(path_.c_str(), &st) == 0 && FileState(st).is_same_content(state_);
}

// The time is that of the archive: those of members are often all the same.
FileStamp Archive::stamp(const std::string& name) const {
  FileRef ignored;
  return locate(name, ignored);
}

FileStamp Archive::locate(const std::string& name, FileRef& file) const {
  const Member* m = find(name);
  if (m == nullptr) {
    file.part = FilePart{.file = path_, .problem = "is not in the archive"};
    return {};
  }
  file.size = m->size;
  file.part = FilePart{.file = file_,
                       .begin = m->begin,
                       .stored = m->stored,
                       .is_deflated = m->is_deflated != 0,
                       .state = state_of_file_,
                       .problem = problem(static_cast<std::size_t>(m - members_.data()))};
  if (is_zip_) file.part->crc = m->crc;
  return {static_cast<std::int64_t>(m->size), modified_};
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

std::size_t archive_memory(const std::string& path) {
  Opened& all = opened();
  const std::shared_lock lock(all.mutex);
  std::size_t bytes = 0;
  for (const auto& [archive, index] : all.archives)
    if (const std::string at = whole_root(archive); at.starts_with(path) || path.starts_with(at))
      bytes += index->memory_bytes();
  return bytes;
}

ContainedItem archived_item(const std::string& path) {
  for (std::size_t slash = 0; (slash = path.find('/', slash + 1)) != path.npos;) {
    if (!is_archive_name(std::string_view(path).substr(0, slash)) || slash + 1 == path.size())
      continue;
    const std::string file = path.substr(0, slash);
    struct stat st {};
    if (stat(file.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
    try {
      return {archive_at(file), path.substr(slash + 1)};
    } catch (const RunError& e) {
      return {std::make_shared<const Unreadable>(file, e.what()), path.substr(slash + 1)};
    }
  }
  return {};
}

std::string cure_of_archive(std::string_view path) {
  return fmt::format("; copy the archive {} again, or pack it again", path);
}

bool inflate_member(const std::byte* packed, std::size_t size, std::byte* out,
                    std::size_t out_size) {
  using Decompressor =
      std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>;
  static thread_local const Decompressor of_thread(libdeflate_alloc_decompressor(),
                                                   &libdeflate_free_decompressor);
  std::size_t made = 0;
  return of_thread &&
         libdeflate_deflate_decompress(of_thread.get(), packed, size, out, out_size, &made) ==
             LIBDEFLATE_SUCCESS &&
         made == out_size;
}

std::uint32_t crc_of(std::uint32_t before, const std::byte* bytes, std::size_t size) {
  return libdeflate_crc32(before, bytes, size);
}

}  // namespace melflow
