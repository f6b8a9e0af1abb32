#include "stages/files/whole_io.h"

#include <sys/stat.h>
#include <cstring>

#include <fmt/format.h>

#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"

namespace melflow {
UniqueFd open_regular(const std::string& path, std::uint64_t& bytes) {
  UniqueFd fd(InputFile(path).release());
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) throw RunError(fmt::format("{}: {}", path, std::strerror(errno)));
  bytes = static_cast<std::uint64_t>(st.st_size);
  return fd;
}

std::string read_at(int fd, std::uint64_t at, std::size_t bytes, const std::string& path) {
  std::string out(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::pread(fd, out.data() + done, bytes - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw RunError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  out.resize(done);
  return out;
}

}  // namespace melflow
