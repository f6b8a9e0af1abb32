#include "stages/files/log_file.h"

#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/files/own_file.h"
#include "stages/files/whole_io.h"

namespace melflow {
namespace {

constexpr std::string_view kLogMark = "melflow log 1\n";
constexpr std::uint32_t kLongest = 256 << 20;  // longest record [bytes]
constexpr std::uint32_t kChanges = 1U << 31;   // set in a length: the bytes may change

std::uint64_t hash_of(std::string_view record, std::uint32_t length, std::uint64_t before) {
  return (length & kChanges) != 0 ? XXH3_64bits_withSeed(&length, sizeof length, before)
                                  : XXH3_64bits_withSeed(record.data(), record.size(), before);
}

// Returns the first position behind the first byte of a record at `at` that is aligned in the file.
std::size_t aligned_in(std::uint64_t at) {
  constexpr std::uint64_t kAlignment = 64;
  const std::uint64_t begin = at + sizeof(std::uint32_t);
  return static_cast<std::size_t>((begin + kAlignment) / kAlignment * kAlignment - begin);
}

}  // namespace

LogFile::LogFile(std::string path, UniqueFd fd)
    : path_(std::move(path)), fd_(std::move(fd)), place_{kLogMark.size(), 0} {}

std::unique_ptr<LogFile> LogFile::create(const std::string& path) {
  std::unique_ptr<LogFile> out(new LogFile(path, create_own(path, kLogMark)));
  if (const int error = write_whole(out->fd_.get(), kLogMark.data(), kLogMark.size(), 0);
      error != 0) {
    out->remove();
    out->fail("cannot be written", error);
  }
  return out;
}

std::unique_ptr<LogFile> LogFile::open(const std::string& path) {
  UniqueFd fd = open_locked(path);
  if (!fd) return nullptr;
  if (!is_own(fd.get(), kLogMark)) refuse_foreign(path);
  return std::unique_ptr<LogFile>(new LogFile(path, std::move(fd)));
}

bool LogFile::next(std::string& record) {
  std::uint32_t marked = 0;
  std::uint64_t hash = 0;
  const auto get = [&](void* to, std::size_t bytes, std::uint64_t at) {
    return read_whole(fd_.get(), to, bytes, at) == 0;
  };
  if (!get(&marked, sizeof marked, place_.at)) return false;
  const std::uint32_t length = marked & ~kChanges;
  if (length > kLongest) return false;
  // The hash behind the record is read first, so that a damaged length allocates no memory.
  const std::uint64_t end = place_.at + sizeof length + length;
  if (!get(&hash, sizeof hash, end)) return false;
  record.resize(length);
  if (!get(record.data(), length, place_.at + sizeof length) ||
      hash_of(record, marked, place_.hash) != hash)
    return false;
  place_ = {end + sizeof hash, hash};
  return true;
}

void LogFile::cut() const {
  if (ftruncate(fd_.get(), static_cast<off_t>(place_.at)) != 0) fail("cannot be cut", errno);
}

void LogFile::append(std::string_view record) {
  append(record, static_cast<std::uint32_t>(record.size()));
}

LogFile::Mapped LogFile::append_changing(char first, std::size_t changing) {
  const std::size_t before = aligned_in(place_.at);
  const std::uint64_t begin = place_.at + sizeof(std::uint32_t) + before;
  std::string record(before + changing, '\0');
  record.front() = first;
  append(record, static_cast<std::uint32_t>(record.size()) | kChanges);
  const std::uint64_t in_page = begin % static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  Mapped out{{fd_.get(), begin - in_page, in_page + changing, PROT_READ | PROT_WRITE}, {}};
  if (out.mapping.data() != nullptr) out.bytes = {out.mapping.data() + in_page, changing};
  return out;
}

std::string_view LogFile::changing_of(std::string_view record, const Place& place) {
  return record.substr(std::min(record.size(), aligned_in(place.at)));
}

void LogFile::append(std::string_view record, std::uint32_t length) {
  const std::uint64_t hash = hash_of(record, length, place_.hash);
  std::string bytes(sizeof length + record.size() + sizeof hash, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + sizeof length, record.data(), record.size());
  std::memcpy(bytes.data() + sizeof length + record.size(), &hash, sizeof hash);
  if (const int error = write_whole(fd_.get(), bytes.data(), bytes.size(), place_.at); error != 0)
    fail("cannot be written", error);
  place_ = {place_.at + bytes.size(), hash};
}

void LogFile::sync() const {
  if (fdatasync(fd_.get()) != 0) fail("cannot be brought to disk", errno);
}

void LogFile::sync_name() const {
  if (const int error = sync_folder_of(path_); error != 0)
    fail("its name cannot be synced to disk", error);
}

void LogFile::fail(const char* what, int error) const {
  throw RunError(fmt::format("{}: {}: {}", path_, what, std::strerror(error)));
}

}  // namespace melflow
