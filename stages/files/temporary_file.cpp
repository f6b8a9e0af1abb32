#include "stages/files/temporary_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "stages/files/whole_io.h"

namespace melflow {

UniqueFd temporary_file_in(const std::string& folder) {
  UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd) return fd;
  // NFS, FUSE and some overlays have no O_TMPFILE.
  std::string name = folder + "/.melflow-XXXXXX";
  fd = UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
  if (fd) ::unlink(name.c_str());
  return fd;
}

UniqueFd temporary_file(std::span<const std::byte> bytes) {
  std::error_code ignored;
  std::string folder = std::filesystem::temp_directory_path(ignored);
  if (folder.empty()) folder = "/tmp";
  UniqueFd fd = temporary_file_in(folder);
  if (!fd) return fd;
  const int error = write_whole(fd.get(), bytes.data(), bytes.size(), 0);
  errno = error;
  return error == 0 ? std::move(fd) : UniqueFd();
}

}  // namespace melflow
