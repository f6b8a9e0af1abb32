// Whether a file's content may have changed, by what the system says without reading it.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>

namespace melflow {

/// The size and modification time of a file; a file counts as unchanged while they are the same.
struct FileStamp {
  std::int64_t size = -1;      ///< [bytes]; -1: not known
  std::int64_t modified = -1;  ///< [ns] since 1970
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
/// The stamp of a regular file, -1 in both members for anything else.
inline FileStamp stamp_of(const struct stat& st) {
  if (!S_ISREG(st.st_mode)) return {};
  return {static_cast<std::int64_t>(st.st_size),
          static_cast<std::int64_t>(st.st_mtim.tv_sec) * 1'000'000'000 + st.st_mtim.tv_nsec};
}
/// Whether this errno means that the file does not exist, not that it cannot be reached.
inline bool is_gone(int error) { return error == ENOENT || error == ENOTDIR; }

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
  /// reset, and another file that has got the name, show in the inode's change time. A new one does
  /// not count if permissions, owner or number of links of the same file have changed too (as by a
  /// backup). A new inode alone does not count: some file systems number files again.
  [[nodiscard]] bool is_same_content(const FileState& other) const {
    return size_ == other.size_ && is_equal(modified_, other.modified_) &&
           (is_equal(changed_, other.changed_) || (is_same_inode(other) && is_otherwise(other)));
  }

 private:
  [[nodiscard]] bool is_same_inode(const FileState& other) const {
    return device_ == other.device_ && inode_ == other.inode_;
  }
  [[nodiscard]] bool is_otherwise(const FileState& other) const {
    return mode_ != other.mode_ || owner_ != other.owner_ || group_ != other.group_ ||
           links_ != other.links_;
  }
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
