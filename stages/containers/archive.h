// The members of a tar or zip archive, as recordings: where the bytes of each one are in the file.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stages/containers/container.h"

namespace melflow {

class Archive final : public Container {
 public:
  struct Member {
    std::uint64_t name = 0;    ///< where the name begins in `names_`; it ends in '\0'
    std::uint64_t begin = 0;   ///< of its bytes in the file
    std::uint64_t stored = 0;  ///< bytes in the file
    std::uint64_t size = 0;    ///< [bytes], when inflated
    std::uint32_t crc = 0;     ///< CRC-32 of the bytes, in a zip
    std::uint32_t is_deflated : 1 = 0;
    std::uint32_t problem : 31 = 0;  ///< 1 + the index of why it cannot be read; 0: it can be
  };

  /// Reads the index of the archive, a .tar, .tar.gz, .tgz or .zip. What is packed as a whole is
  /// unpacked into a temporary file. Throws RunError where the file cannot be read or is no
  /// archive.
  explicit Archive(std::string path);

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The number of members that are files, in the order of their names, each name once.
  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const {
    return members_.capacity() * sizeof(Member) + names_.capacity();
  }
  [[nodiscard]] std::string_view name(std::size_t i) const { return text(members_[i]); }
  /// Why a member cannot be read; "" if it can.
  [[nodiscard]] std::string problem(std::size_t i) const;
  /// The stretches of the file in which headers are damaged, so that members may be missing.
  struct Damage {
    std::uint64_t begin = 0, end = 0;
  };
  [[nodiscard]] const std::vector<Damage>& damages() const { return damages_; }
  /// Warnings about the archive as a whole.
  [[nodiscard]] const std::vector<std::string>& remarks() const { return remarks_; }
  /// Whether the file is unchanged since the index was read.
  [[nodiscard]] bool is_current() const;

  [[nodiscard]] FileStamp stamp(const std::string& name) const override;
  FileStamp locate(const std::string& name, FileRef& file) const override;

 private:
  friend class TarIndex;
  friend class ZipIndex;
  void unpack(int fd, std::uint64_t size);
  void add(std::string_view name, Member member, std::string problem = "");
  void add_damage(std::uint64_t begin, std::uint64_t end) { damages_.push_back({begin, end}); }
  void sort();
  [[nodiscard]] const Member* find(std::string_view name) const;
  [[nodiscard]] std::string_view text(const Member& m) const { return names_.c_str() + m.name; }

  std::string path_, file_;     // the given path; the file with the members' bytes
  std::int64_t modified_ = -1;  // as FileStamp::modified
  FileState state_, state_of_file_;
  UniqueFd unpacked_;  // file_, where it is a temporary one
  bool is_zip_ = false;
  mutable std::atomic<std::size_t> found_{0};  // the member that was found last
  std::vector<Member> members_;
  std::string names_;
  std::vector<Damage> damages_;
  std::vector<std::string> problems_, remarks_;
};

/// Whether a path ends in .tar, .tar.gz, .tgz or .zip, in upper or lower case.
bool is_archive_name(std::string_view path);
/// What to do about damage in an archive: "; copy the archive x.zip again, or pack it again".
std::string cure_of_archive(std::string_view path);
/// Returns the index of an archive, which this process keeps while the file stays the same. Throws
/// RunError.
std::shared_ptr<const Archive> archive_at(const std::string& path);
/// The memory of the indexes that this process keeps of archives at or below a path, which
/// whole_root() made [bytes].
std::size_t archive_memory(const std::string& path);
/// The member that a path names, /data/corpus.tar/a.wav; no container where there is no archive.
ContainedItem archived_item(const std::string& path);

/// Inflates the bytes of a deflated member into `out`, which has its size. False: they are damaged.
bool inflate_member(const std::byte* packed, std::size_t size, std::byte* out,
                    std::size_t out_size);
/// The CRC-32 of bytes; `before`: that of the bytes before them, or 0.
std::uint32_t crc_of(std::uint32_t before, const std::byte* bytes, std::size_t size);

}  // namespace melflow
