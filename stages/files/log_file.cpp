#include "stages/files/log_file.h"

#include <xxhash.h>

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
constexpr std::uint32_t kLongest = 256 << 20;  // of a record [bytes]

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
  std::uint32_t length = 0;
  std::uint64_t hash = 0;
  const auto get = [&](void* to, std::size_t bytes, std::uint64_t at) {
    return read_whole(fd_.get(), to, bytes, at) == 0;
  };
  if (!get(&length, sizeof length, place_.at) || length > kLongest) return false;
  // Its end first: a length that is damaged asks for no memory.
  const std::uint64_t end = place_.at + sizeof length + length;
  if (!get(&hash, sizeof hash, end)) return false;
  record.resize(length);
  if (!get(record.data(), length, place_.at + sizeof length) ||
      XXH3_64bits_withSeed(record.data(), length, place_.hash) != hash)
    return false;
  place_ = {end + sizeof hash, hash};
  return true;
}

void LogFile::cut() const {
  if (ftruncate(fd_.get(), static_cast<off_t>(place_.at)) != 0) fail("cannot be cut", errno);
}

void LogFile::append(std::string_view record) {
  const auto length = static_cast<std::uint32_t>(record.size());
  const std::uint64_t hash = XXH3_64bits_withSeed(record.data(), record.size(), place_.hash);
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
