#include "stages/corpus/whole_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "stages/containers/container.h"

namespace melflow {
namespace {

// The time since the file's data, name or mode changed, as far as this machine's clock tells [s].
double age_of(const struct stat& st) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const auto since = [&now](const timespec& then) {
    return static_cast<double>(now.tv_sec - then.tv_sec) +
           1e-9 * static_cast<double>(now.tv_nsec - then.tv_nsec);
  };
  return std::min(since(st.st_mtim), since(st.st_ctim));
}

}  // namespace

bool WholeFiles::is_whole(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) {
    seen_.erase(path);
    return false;
  }
  if (age_of(st) >= still_.count()) {
    seen_.erase(path);
    return true;
  }
  const FileStamp stamp = stamp_of(path);
  const auto now = std::chrono::steady_clock::now();
  const auto [it, is_new] = seen_.try_emplace(path, Seen{stamp, now});
  if (is_new) return false;
  if (it->second.stamp != stamp) {
    it->second = {stamp, now};
    return false;
  }
  return now - it->second.since >= still_;
}

}  // namespace melflow
