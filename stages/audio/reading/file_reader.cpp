#include "stages/audio/reading/file_reader.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "pipeline/base/input_file.h"
#include "stages/containers/archive.h"
#include "stages/files/inflater.h"
#include "stages/files/temporary_file.h"
#include "stages/files/whole_io.h"

namespace melflow {
namespace {

ItemError changed(const FileRef& file, std::uint64_t size) {
  return ItemError::failed(
      fmt::format("changed while it was read: {} bytes when listed, {} now", file.size, size));
}

ItemError damaged(const FilePart& part) {
  return ItemError::failed("is damaged in its archive: its checksum is another one" +
                           cure_of_archive(part.file));
}

}  // namespace

int FileReader::flags() const {
  const bool noatime = settings_.noatime && !noatime_refused_.load(std::memory_order_relaxed);
  return noatime ? kInputFlags | O_NOATIME : kInputFlags;
}

bool FileReader::retry(int error, int flags) const {
  if (error != EPERM || (flags & O_NOATIME) == 0) return false;
  noatime_refused_.store(true, std::memory_order_relaxed);
  return true;
}

UniqueFd FileReader::open(const std::string& path, int& error) const {
  for (;;) {
    const int flags = this->flags();
    UniqueFd fd(::open(path.c_str(), flags));
    error = fd ? 0 : errno;
    if (error == 0 || !retry(error, flags)) return fd;
  }
}

ItemError FileReader::open_error(const FileRef& file, int error) {
  struct stat st {};
  if (error == ENOENT && lstat(file.path.c_str(), &st) == 0 && S_ISLNK(st.st_mode))
    return ItemError::failed("is a link that leads nowhere");
  if (error == ENOENT) return ItemError::failed("does not exist (any more)");
  if (error == ENXIO || error == ENODEV) return ItemError::skipped("is a socket or a device");
  if (error == ELOOP) return ItemError::failed("is a link that leads in a circle");
  return read_error(error);
}

ItemError FileReader::read_error(int error) {
  return ItemError::failed(fmt::format("cannot be read: {}", std::strerror(error)));
}

ItemError FileReader::shorter(const Reading& reading, std::uint64_t got) {
  return ItemError::failed(
      fmt::format("changed while it was read: {} bytes when opened, {} now", reading.size, got));
}

std::optional<ItemError> FileReader::check_unchanged(int fd, const FileState& before) {
  struct stat st {};
  if (fstat(fd, &st) != 0) return read_error(errno);
  if (FileState(st).is_same_content(before)) return std::nullopt;
  return ItemError::failed(
      "changed while it was read: it was written to, so that its samples may "
      "be of two recordings");
}

Result<FileReader::Reading> FileReader::admit(std::shared_ptr<const FileRef> file, UniqueFd& fd,
                                              BufferPool& pool) const {
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return read_error(errno);
  if (!S_ISREG(st.st_mode)) return ItemError::skipped("is " + not_a_file(st.st_mode));
  const FilePart* part = file->part ? &*file->part : nullptr;
  const auto in_file = static_cast<std::uint64_t>(st.st_size);
  if (part != nullptr && part->state && !FileState(st).is_same_content(*part->state))
    return ItemError::failed("its archive has changed since it was listed");
  if (part != nullptr && (part->begin > in_file || part->stored > in_file - part->begin))
    return ItemError::failed("its archive is damaged here" + cure_of_archive(part->file));
  const std::uint64_t size = part != nullptr ? file->size : in_file;
  if (size == 0) return ItemError::failed("empty file (0 bytes)");
  Reading reading;
  reading.before = FileState(st);
  reading.out = std::make_shared<RawBytes>();
  RawBytes& out = *reading.out;
  out.size = size;
  out.window = window();
  const bool is_packed = part != nullptr && part->is_deflated;
  const std::uint64_t begin = part != nullptr ? part->begin : 0;
  if (is_packed && (size > settings_.whole || part->stored > settings_.whole - size)) {
    auto inflated = inflate_large(*file, fd.get());
    if (!inflated) return std::move(inflated.error());
    if (auto error = check_unchanged(fd.get(), reading.before)) return std::move(*error);
    out.fd = std::move(*inflated);
  } else if (size > settings_.whole) {
    if (file->size <= settings_.whole) return changed(*file, size);
    advise(fd.get(), begin, size);
    out.fd = std::move(fd);
    out.begin = begin;
  } else {
    // Only as much memory as was admitted may be held.
    if (size > file->size) return changed(*file, size);
    reading.from = begin;
    reading.size = is_packed ? part->stored : size;
    if (reading.size > settings_.buffer) advise(fd.get(), begin, reading.size);
    if (is_packed) reading.packed.resize(reading.size);
    out.data = pool.lease(size);
    reading.to = is_packed ? reading.packed.data() : out.data.data();
  }
  out.file = std::move(file);
  return reading;
}

std::optional<ItemError> FileReader::finish(Reading& reading, int fd) {
  if (auto changed = check_unchanged(fd, reading.before)) return changed;
  RawBytes& out = *reading.out;
  if (!out.file->part) return std::nullopt;
  const FilePart& part = *out.file->part;
  const bool is_whole =
      !part.is_deflated ||
      inflate_member(reading.packed.data(), reading.packed.size(), out.data.data(), out.size);
  if (!is_whole || (part.crc && crc_of(0, out.data.data(), out.size) != *part.crc))
    return damaged(part);
  return std::nullopt;
}

Result<UniqueFd> FileReader::inflate_large(const FileRef& file, int fd) {
  UniqueFd out = temporary_file({});
  int error = out ? 0 : errno;
  const FilePart& part = *file.part;
  std::uint64_t made = 0, taken = 0;
  std::uint32_t crc = 0;
  Inflater inflater(Inflater::Format::deflate);
  const auto keep = [&](std::span<const std::byte> bytes) {
    if (bytes.size() > file.size - made) return false;
    error = write_whole(out.get(), bytes.data(), bytes.size(), made);
    crc = crc_of(crc, bytes.data(), bytes.size());
    made += bytes.size();
    return error == 0;
  };
  std::string packed;
  for (bool is_right = true; is_right && error == 0 && taken < part.stored;) {
    constexpr std::uint64_t kPiece = 1 << 20;
    packed.resize(std::min(kPiece, part.stored - taken));
    if (const int wrong = read_whole(fd, packed.data(), packed.size(), part.begin + taken))
      return read_error(wrong);
    taken += packed.size();
    is_right = inflater.take(packed, keep);
  }
  if (error != 0)
    return ItemError::failed(
        fmt::format("cannot be unpacked into a temporary file: {}", std::strerror(error)));
  if (!inflater.is_whole() || made != file.size || (part.crc && crc != *part.crc))
    return damaged(part);
  return out;
}

Result<std::shared_ptr<const RawBytes>> FileReader::read(std::shared_ptr<const FileRef> file,
                                                         BufferPool& pool) const {
  if (file->container) {
    const Container& container = *file->container;
    auto given = container.read(std::move(file), pool, settings_.whole);
    if (!given) return std::move(given.error());
    (*given)->window = window();
    return std::shared_ptr<const RawBytes>(std::move(*given));
  }
  int error = 0;
  UniqueFd fd = open(file_of(*file), error);
  if (!fd) return open_error(*file, error);
  auto admitted = admit(std::move(file), fd, pool);
  if (!admitted) return std::move(admitted.error());
  Reading& reading = *admitted;
  if (reading.to == nullptr) return std::shared_ptr<const RawBytes>(std::move(reading.out));
  for (std::uint64_t got = 0; got < reading.size;) {
    const std::size_t want = std::min<std::size_t>(reading.size - got, settings_.buffer);
    const ssize_t n =
        ::pread(fd.get(), reading.to + got, want, static_cast<off_t>(reading.from + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return read_error(errno);
    if (n == 0) return shorter(reading, got);
    got += static_cast<std::uint64_t>(n);
  }
  if (auto wrong = finish(reading, fd.get())) return std::move(*wrong);
  return std::shared_ptr<const RawBytes>(std::move(reading.out));
}

std::size_t FileReader::window() const {
  if (settings_.whole == 0) return settings_.buffer;  // every file is read piece by piece
  return std::min<std::size_t>(settings_.buffer, settings_.whole);
}

std::optional<Result<std::shared_ptr<const RawBytes>>> FileReader::unread(
    const std::shared_ptr<const FileRef>& file) const {
  if (!file->problem.empty()) return ItemError::failed(std::string(file->problem));
  if (file->part && !file->part->problem.empty()) return ItemError::failed(file->part->problem);
  if (!file->stored) return std::nullopt;
  auto out = std::make_shared<RawBytes>();
  out->window = window();
  out->file = file;
  return std::shared_ptr<const RawBytes>(std::move(out));
}

void FileReader::advise(int fd, std::uint64_t begin, std::uint64_t size) const {
  if (settings_.advise == Advise::none) return;
  posix_fadvise(
      fd, static_cast<off_t>(begin), static_cast<off_t>(size),
      settings_.advise == Advise::sequential ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_WILLNEED);
}

}  // namespace melflow
