// Folders whose listing fails as a disk or a network makes it fail: the test program has opendir
// and readdir of its own, which call those of the system.
#pragma once

#include <string>

namespace melflow::test {

/// As long as it lives, folders whose path ends so cannot be opened, or cannot be read to their
/// end.
class FolderFault {
 public:
  enum class Where { opendir, readdir };
  FolderFault(Where where, std::string ending, int error);
  FolderFault(const FolderFault&) = delete;
  FolderFault& operator=(const FolderFault&) = delete;
  ~FolderFault();
};

}  // namespace melflow::test
