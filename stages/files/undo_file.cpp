#include "stages/files/undo_file.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>  // RENAME_NOREPLACE
#include <cstring>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/files/own_file.h"
#include "stages/files/unique_fd.h"
#include "stages/files/whole_io.h"

namespace melflow {
namespace {

struct Header {
  char magic[16];
  std::uint64_t head, tail, size;  // [bytes]
  std::uint64_t hash;              // of the members above and of all bytes behind the header
};
constexpr char kMagic[16] = "melflow undo 2\n";
constexpr std::string_view kUndoMark(kMagic, 15);

std::uint64_t hash_of(const Header& header, std::string_view kept) {
  return XXH3_64bits_withSeed(kept.data(), kept.size(),
                              XXH3_64bits(&header, offsetof(Header, hash)));
}

std::string path_of(const std::string& target) { return target + std::string(UndoFile::kEnding); }

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  throw RunError(fmt::format("{}: {}: {}", path, what, std::strerror(error)));
}

void get(const std::string& path, int fd, char* data, std::size_t bytes, std::uint64_t at) {
  if (const int error = read_whole(fd, data, bytes, at); error != 0)
    fail(path, "cannot be read", error);
}

void put(const std::string& path, int fd, const char* data, std::size_t bytes, std::uint64_t at) {
  if (const int error = write_whole(fd, data, bytes, at); error != 0)
    fail(path, "cannot be written", error);
}

void sync(const std::string& path, int fd) {
  if (fdatasync(fd) != 0) fail(path, "cannot be brought to disk", errno);
}

}  // namespace

void UndoFile::write(const std::string& target, int fd, std::uint64_t head, std::uint64_t tail,
                     std::uint64_t size) {
  const std::string path = path_of(target), part = path + ".part";
  head = std::min(head, size);
  tail = std::min(tail, size);
  std::string kept(head + (size - tail), '\0');
  get(target, fd, kept.data(), head, 0);
  get(target, fd, kept.data() + head, size - tail, tail);
  Header header{{}, head, tail, size, 0};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.hash = hash_of(header, kept);
  const UniqueFd out = create_own(part, kUndoMark);
  try {
    put(part, out.get(), reinterpret_cast<const char*>(&header), sizeof header, 0);
    sync(part, out.get());  // its beginning shows a later run that it is melflow's
    put(part, out.get(), kept.data(), kept.size(), sizeof header);
    sync(part, out.get());
    if (const int error = close_error(out.get()); error != 0)
      fail(part, "cannot be written", error);
    if (const int error = rename_file(part, path, RENAME_NOREPLACE); error != 0)
      fail(path, "cannot be made", error);
  } catch (const RunError&) {
    ::unlink(part.c_str());
    throw;
  }
  if (const int error = sync_folder_of(path); error != 0) {
    ::unlink(path.c_str());
    fail(path, "cannot be brought to disk", error);
  }
}

void UndoFile::check(const std::string& target) {
  check_side_file(path_of(target), kUndoMark);
  check_side_file(path_of(target) + ".part", kUndoMark);
}

bool UndoFile::exists(const std::string& target) { return has_name(path_of(target)); }

void UndoFile::apply(const std::string& target, int fd) {
  const std::string path = path_of(target);
  const UniqueFd in = open_locked(path);
  struct stat st {};
  if (!in || fstat(in.get(), &st) != 0) fail(path, "cannot be read", errno);
  Header header{};
  get(path, in.get(), reinterpret_cast<char*>(&header), sizeof header, 0);
  const auto bytes = static_cast<std::uint64_t>(st.st_size);
  // Checked before memory is allocated: the file may claim any size.
  const bool is_whole = std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 &&
                        header.head <= header.size && header.tail <= header.size &&
                        bytes == sizeof header + header.head + (header.size - header.tail);
  std::string kept(is_whole ? bytes - sizeof header : 0, '\0');
  get(path, in.get(), kept.data(), kept.size(), sizeof header);
  if (!is_whole || header.hash != hash_of(header, kept))
    throw RunError(fmt::format(
        "{}: this file is damaged, so {}.part cannot be restored to its state before an update "
        "that was interrupted; remove both and build {} again",
        path, target, target));
  // Cut first, so that the space of the added bytes is free again.
  struct stat now {};
  if (fstat(fd, &now) != 0 || (static_cast<std::uint64_t>(now.st_size) > header.size &&
                               ftruncate(fd, static_cast<off_t>(header.size)) != 0))
    fail(target, "cannot be restored", errno);
  put(target, fd, kept.data(), header.head, 0);
  put(target, fd, kept.data() + header.head, header.size - header.tail, header.tail);
  if (ftruncate(fd, static_cast<off_t>(header.size)) != 0 || fdatasync(fd) != 0)
    fail(target, "cannot be restored", errno);
}

void UndoFile::remove(const std::string& target) { ::unlink(path_of(target).c_str()); }

}  // namespace melflow
