#include "stages/files/publication.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>  // RENAME_NOREPLACE
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stages/files/own_file.h"
#include "stages/files/undo_file.h"
#include "stages/files/whole_io.h"

namespace melflow {
namespace {

constexpr std::string_view kNamesMark = "melflow names 1\n";
constexpr std::string_view kEnding = ".commit";
constexpr std::size_t kHead = kNamesMark.size() + sizeof(XXH64_hash_t);
constexpr std::size_t kMostCommitBytes = 16 << 20;  // longest `.commit` [bytes]

struct Member {
  std::string target;
  Existing existing = Existing::refuse;
  [[nodiscard]] std::string part() const { return target + ".part"; }
  [[nodiscard]] std::string old() const { return target + ".replaced"; }
};
using Members = std::vector<Member>;

struct Failure {
  std::string target;
  std::string what;
};

std::string commit_path(const std::string& path) {
  return without_links(path) + std::string(kEnding);
}

std::string parts_of(const Members& members) {
  std::vector<std::string> names;
  for (const Member& m : members) names.push_back(m.part());
  return fmt::format("the complete file{} {}", names.size() == 1 ? " is" : "s are",
                     fmt::join(names, ", "));
}

bool extends(const Members& members) {
  return std::any_of(members.begin(), members.end(),
                     [](const Member& m) { return m.existing == Existing::extend; });
}

// ---- the steps, recorded on disk

// Writes the `.commit` file, and returns it locked.
UniqueFd write_commit(const std::string& commit, const Members& members, bool sync) {
  std::string list;
  for (const Member& m : members) {
    list += static_cast<char>('0' + static_cast<int>(m.existing));
    const bool is_beside = folder_of(m.target) == folder_of(commit);
    list += is_beside ? m.target.substr(m.target.rfind('/') + 1)
                      : std::filesystem::absolute(m.target).string();
    list += '\0';
  }
  const XXH64_hash_t hash = XXH3_64bits(list.data(), list.size());
  std::string bytes(kNamesMark);
  bytes.append(reinterpret_cast<const char*>(&hash), sizeof hash);
  bytes += list;
  const std::string part = commit + ".part";
  UniqueFd fd = create_own(part, kNamesMark);
  int error = write_whole(fd.get(), bytes.data(), bytes.size(), 0);
  if (error == 0 && sync && fdatasync(fd.get()) != 0) error = errno;
  if (error == 0) error = close_error(fd.get());
  if (error == 0) error = rename_file(part, commit, RENAME_NOREPLACE);
  if (error == 0 && sync) error = sync_folder_of(commit);
  if (error == 0) return fd;
  ::unlink(part.c_str());
  ::unlink(commit.c_str());
  throw Failure{commit, fmt::format("cannot be written: {}", std::strerror(error))};
}

std::optional<Members> read_commit(const std::string& commit, int fd) {
  struct stat st {};
  if (fstat(fd, &st) != 0 || static_cast<std::size_t>(st.st_size) < kHead ||
      static_cast<std::size_t>(st.st_size) > kMostCommitBytes)
    return std::nullopt;
  std::string bytes(static_cast<std::size_t>(st.st_size), '\0');
  if (read_whole(fd, bytes.data(), bytes.size(), 0) != 0 || !bytes.starts_with(kNamesMark))
    return std::nullopt;
  XXH64_hash_t hash = 0;
  std::memcpy(&hash, bytes.data() + kNamesMark.size(), sizeof hash);
  if (hash != XXH3_64bits(bytes.data() + kHead, bytes.size() - kHead)) return std::nullopt;
  const std::size_t slash = commit.rfind('/');
  const std::string folder = slash == commit.npos ? "" : commit.substr(0, slash + 1);
  Members members;
  for (std::size_t at = kHead; at < bytes.size();) {
    const std::string name(bytes.c_str() + at + 1);
    if (bytes[at] < '0' || bytes[at] > '0' + static_cast<int>(Existing::extend) || name.empty())
      return std::nullopt;
    members.push_back(
        {name.starts_with('/') ? name : folder + name, static_cast<Existing>(bytes[at] - '0')});
    at += name.size() + 2;
  }
  return members;
}

// Returns the real path of a file, however its folder was named.
std::string place_of(const std::string& target) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(folder_of(target), error);
  return error ? target : (folder / target.substr(target.rfind('/') + 1)).string();
}

bool is_one_of(const std::string& target, std::span<const OutputName> names) {
  const std::string place = place_of(target);
  return std::any_of(names.begin(), names.end(), [&](const OutputName& name) {
    if (!name.end) return place == place_of(without_links(name.begin));
    const std::string begin = place_of(name.begin);
    return place.size() >= begin.size() + name.end->size() && place.starts_with(begin) &&
           place.ends_with(*name.end) && place.find('/', begin.size()) == place.npos;
  });
}

void check_members(const std::string& commit, const Members& members,
                   std::span<const OutputName> names) {
  for (const Member& m : members) {
    if (!is_one_of(m.target, names))
      throw RunError(
          fmt::format("{0}: says that an interrupted run was about to give {1} its name, which is "
                      "no output of this pipeline; nothing is changed. Run that pipeline again, or "
                      "remove {0}",
                      commit, m.target));
    check_side_file(m.part());
    UndoFile::check(m.target);
  }
}

// ---- the steps

bool is_there(const Member& m, const std::string& path) {
  try {
    return has_name(path);
  } catch (const RunError& e) {
    throw Failure{m.target, fmt::format("cannot be given its name: {}", e.what())};
  }
}

// Gives the earlier file a second name, so that the new file can replace it without a moment in
// which neither exists.
int second_name(const std::string& target, const std::string& old) {
  if (::link(target.c_str(), old.c_str()) == 0) return 0;
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK) return errno;
  return rename_file(target, old, RENAME_NOREPLACE);
}

void put_aside(const Members& members) {
  for (auto m = members.rbegin(); m != members.rend(); ++m) {
    struct stat st {};
    if (m->existing != Existing::replace || !is_there(*m, m->part()) || !is_there(*m, m->target) ||
        (members.size() == 1 && is_there(*m, m->old())))
      continue;
    const int error = lstat(m->target.c_str(), &st) != 0 ? errno
                      : S_ISDIR(st.st_mode)              ? EISDIR
                      : members.size() == 1              ? second_name(m->target, m->old())
                                            : rename_file(m->target, m->old(), RENAME_NOREPLACE);
    if (error != 0)
      throw Failure{m->target,
                    fmt::format("cannot be renamed to {}: {}", m->old(), std::strerror(error))};
  }
}

void give_names(const Members& members) {
  for (const Member& m : members) {
    if (!is_there(m, m.part()) && is_there(m, m.target))
      continue;  // done already by an interrupted run
    const bool takes_place = members.size() == 1 && m.existing == Existing::replace;
    if (const int error = rename_file(m.part(), m.target, takes_place ? 0 : RENAME_NOREPLACE);
        error != 0)
      throw Failure{m.target, fmt::format("cannot be given its name: {}", std::strerror(error))};
  }
}

void sync_folders(const Members& members) {
  std::set<std::string> folders;
  for (const Member& m : members)
    if (folders.insert(folder_of(m.target)).second)
      if (const int error = sync_folder_of(m.target); error != 0)
        throw Failure{m.target,
                      fmt::format("its name cannot be synced to disk: {}", std::strerror(error))};
}

// Undoes all steps, including those of an interrupted run. Returns false when that fails.
bool take_back(const Members& members) {
  bool is_done = true;
  for (auto m = members.rbegin(); m != members.rend(); ++m)
    if (!has_name(m->part()))
      is_done = rename_file(m->target, m->part(), RENAME_NOREPLACE) == 0 && is_done;
  for (const Member& m : members) {
    if (m.existing != Existing::replace || !has_name(m.old())) continue;
    is_done =
        (is_same_file(m.target, m.old()) ? ::unlink(m.old().c_str())
                                         : rename_file(m.old(), m.target, RENAME_NOREPLACE)) == 0 &&
        is_done;
  }
  return is_done;
}

// Removes the earlier files that were renamed, and `.commit` once they are all gone.
void clear(const std::string& commit, const Members& members) {
  bool is_clear = true;
  for (const Member& m : members) {
    if (m.existing == Existing::replace)
      is_clear = (::unlink(m.old().c_str()) == 0 || errno == ENOENT) && is_clear;
    if (m.existing == Existing::extend) UndoFile::remove(m.target);
  }
  if (is_clear) ::unlink(commit.c_str());
}

}  // namespace

void Publication::publish(const std::string& path, std::span<PartFile* const> all, bool sync) {
  std::vector<PartFile*> files;
  Members members;
  for (PartFile* f : all) {
    if (f->is_unchanged()) continue;
    files.push_back(f);
    members.push_back({f->target_, f->existing_});
  }
  if (files.empty()) return;
  const bool is_update = extends(members);
  // From here on complete files are never removed; an update is undone instead.
  if (!is_update)
    for (PartFile* f : files) f->settle();
  for (PartFile* f : files) f->complete_writes(sync);
  // From here on, a file with such a name was renamed by this run.
  for (const Member& m : members) {
    if (m.existing != Existing::replace || !has_name(m.old())) continue;
    if (!is_update)
      for (PartFile* p : files) p->close();
    throw RunError(fmt::format(
        "{}: cannot be renamed to {}, which exists; {}", m.target, m.old(),
        is_update ? "it is restored to its state before the update" : parts_of(members)));
  }
  const std::string commit = commit_path(path);
  const bool in_steps =
      members.size() > 1 || (sync && members.front().existing == Existing::replace);
  UniqueFd lock;
  try {
    if (in_steps) {
      lock = write_commit(commit, members, sync);
      put_aside(members);
    }
    give_names(members);
    if (sync) sync_folders(members);
  } catch (const Failure& f) {
    const bool is_undone = take_back(members);
    std::string left = parts_of(members);
    if (is_undone && is_update) {
      ::unlink(commit.c_str());
      left = "it is restored to its state before the update";
    } else if (!is_undone) {
      left = fmt::format(
          "and that cannot be undone: {} says which files belong together, and the next run of "
          "this output completes or undoes it",
          commit);
      if (is_update)
        for (PartFile* u : files) u->settle();
    } else if (!in_steps) {
      try {
        lock = write_commit(commit, members, sync);
      } catch (const Failure&) {
        // The message below is true without that file, too.
      } catch (const RunError&) {
      }
    }
    if (!is_update)
      for (PartFile* p : files) p->close();
    throw RunError(fmt::format("{}: {}; {}", f.target, f.what, left));
  }
  for (PartFile* f : files) {
    f->settle();
    f->close();
  }
  clear(commit, members);
}

void Publication::check(const std::string& path) {
  const std::string commit = commit_path(path);
  check_side_file(commit, kNamesMark);
  check_side_file(commit + ".part", kNamesMark);
}

bool Publication::recover(const std::string& path, std::span<const OutputName> names,
                          bool may_change) {
  const std::string commit = commit_path(path);
  if (!has_name(commit)) return false;
  const UniqueFd lock = open_locked(commit);
  if (!lock) return false;
  if (!is_own(lock.get(), kNamesMark)) refuse_foreign(commit);
  const auto members = read_commit(commit, lock.get());
  if (!members)
    throw RunError(
        fmt::format("{}: this file is damaged; it said which files of an earlier run belong "
                    "together. Remove it, and rebuild that output",
                    commit));
  check_members(commit, *members, names);
  if (!may_change) refuse_unfinished(commit);
  try {
    put_aside(*members);
    give_names(*members);
  } catch (const Failure& f) {
    const bool is_undone = take_back(*members);
    if (is_undone && extends(*members)) ::unlink(commit.c_str());
    throw RunError(fmt::format(
        "{}: {}; an interrupted run left files unpublished: {}. Move the conflicting files and run "
        "again, or remove {} to give them up",
        f.target, f.what,
        is_undone ? parts_of(*members) : "some of them have them now, others are .part", commit));
  }
  clear(commit, *members);
  return true;
}

std::string Publication::waiting(const std::string& name) {
  const std::string target = without_links(name);
  std::error_code error;
  std::filesystem::directory_iterator entry(folder_of(target), error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::string path = entry->path().string();
    if (!path.ends_with(kEnding)) continue;
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat st {};
    if (!fd || fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != ::geteuid())
      continue;
    const auto members = read_commit(path, fd.get());
    if (!members) continue;
    for (const Member& m : *members)
      if (m.target.substr(m.target.rfind('/') + 1) == target.substr(target.rfind('/') + 1))
        return path;
  }
  return {};
}

}  // namespace melflow
