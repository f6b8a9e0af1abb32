#include "tests/stage/folder_faults.h"

#include <dirent.h>
#include <dlfcn.h>

#include <cerrno>

namespace melflow::test {
namespace {

struct Fault {
  FolderFault::Where where = FolderFault::Where::opendir;
  std::string ending;  // affected folders; "": none
  int error = 0;
  DIR* dir = nullptr;  // an open folder that will fail
  int given = 0;       // entries returned from it
} fault;

bool is_meant(const char* path) {
  std::string text(path);
  while (text.ends_with('/')) text.pop_back();
  return !fault.ending.empty() && text.ends_with(fault.ending);
}

}  // namespace

FolderFault::FolderFault(Where where, std::string ending, int error) {
  fault = {where, std::move(ending), error};
}
FolderFault::~FolderFault() { fault = {}; }

}  // namespace melflow::test

using melflow::test::fault;
using melflow::test::FolderFault;

extern "C" DIR* opendir(const char* path) {
  static const auto next = reinterpret_cast<DIR* (*)(const char*)>(dlsym(RTLD_NEXT, "opendir"));
  const bool is_meant = melflow::test::is_meant(path);
  if (is_meant && fault.where == FolderFault::Where::opendir) {
    errno = fault.error;
    return nullptr;
  }
  DIR* const dir = next(path);
  if (is_meant || dir == fault.dir) fault.dir = is_meant ? dir : nullptr;
  fault.given = 0;
  return dir;
}

// Returns three entries, then fails.
extern "C" dirent* readdir(DIR* dir) {
  static const auto next = reinterpret_cast<dirent* (*)(DIR*)>(dlsym(RTLD_NEXT, "readdir"));
  if (dir != fault.dir || fault.given++ < 3) return next(dir);
  errno = fault.error;
  return nullptr;
}
