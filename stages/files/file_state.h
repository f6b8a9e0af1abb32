// What the system says about a file's content without reading it: whether it may be another one.
#pragma once

#include <sys/stat.h>

namespace melflow {

class FileState {
 public:
  FileState() = default;
  explicit FileState(const struct stat& st)
      : device_(st.st_dev),
        inode_(st.st_ino),
        size_(st.st_size),
        modified_(st.st_mtim),
        changed_(st.st_ctim),
        mode_(st.st_mode),
        owner_(st.st_uid),
        group_(st.st_gid),
        links_(st.st_nlink) {}

  /// Whether the file has the same bytes, as far as the system can tell. A write whose time was
  /// reset shows in the inode's change time, and another file of the same size and time in its
  /// inode; a new change time does not count if permissions, owner or number of links have changed
  /// too (as by a backup).
  [[nodiscard]] bool is_same_content(const FileState& other) const {
    return device_ == other.device_ && inode_ == other.inode_ && size_ == other.size_ &&
           is_equal(modified_, other.modified_) &&
           (is_equal(changed_, other.changed_) || mode_ != other.mode_ || owner_ != other.owner_ ||
            group_ != other.group_ || links_ != other.links_);
  }

 private:
  static bool is_equal(const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
  }
  dev_t device_ = 0;
  ino_t inode_ = 0;
  off_t size_ = -1;
  timespec modified_{}, changed_{};
  mode_t mode_ = 0;
  uid_t owner_ = 0;
  gid_t group_ = 0;
  nlink_t links_ = 0;
};

}  // namespace melflow
