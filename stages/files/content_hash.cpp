#include "stages/files/content_hash.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "pipeline/base/input_file.h"
#include "stages/files/byte_hash.h"
#include "stages/files/unique_fd.h"

namespace melflow {
namespace {

std::uint64_t not_none(XXH64_hash_t hash) { return hash == 0 ? 1 : hash; }

}  // namespace

std::uint64_t content_hash(std::span<const std::byte> bytes) {
  return not_none(XXH3_64bits(bytes.data(), bytes.size()));
}

std::uint64_t content_hash(int fd, std::uint64_t begin, std::uint64_t size) {
  ByteHash hash;
  std::vector<std::byte> buffer(64 << 10);
  for (std::uint64_t at = 0;;) {
    const std::size_t want = std::min<std::uint64_t>(buffer.size(), size - at);
    const ssize_t n = ::pread(fd, buffer.data(), want, static_cast<off_t>(begin + at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return 0;  // errno says why
    if (n == 0) return not_none(hash.value());
    hash.add(buffer.data(), static_cast<std::size_t>(n));
    at += static_cast<std::uint64_t>(n);
  }
}

std::uint64_t content_hash_of(const std::string& path, int* error) {
  InputFile file(path);
  if (error != nullptr) *error = file.error();
  if (file.error() != 0) return 0;
  const UniqueFd fd(file.release());
  // Only of one's own files.
  static_cast<void>(::fcntl(fd.get(), F_SETFL, O_NOATIME));
  const std::uint64_t hash = content_hash(fd.get());
  if (error != nullptr && hash == 0) *error = errno;
  return hash;
}

}  // namespace melflow
