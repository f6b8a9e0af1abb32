// Folders whose listing fails as if by a disk or a network: the test program defines opendir and
// readdir, which call the system's.
#pragma once

#include <string>

namespace melflow::test {

/// As long as it lives, folders whose path ends like this cannot be opened, or not be read to their
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
