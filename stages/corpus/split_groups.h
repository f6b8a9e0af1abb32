// Which files must stay in one split (split_group), by keys: files of equal keys belong together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stages/corpus/file_list_options.h"
#include "stages/corpus/name_rule.h"

namespace melflow {

class SplitGroups {
 public:
  /// The key of what no split is drawn for: what is no recording, and with split_unmatched:
  /// no_split a file without a group.
  static constexpr std::uint64_t kNone = 0;

  explicit SplitGroups(const FileListOptions& options);

  /// The next file; its path below the root, and its cell of the manifest's column.
  void add(std::string_view path, std::string_view cell);
  /// Something in the list that is no recording.
  void add_other();
  /// Of every file, the seed in them; none where splits need no groups.
  [[nodiscard]] const std::vector<std::uint64_t>& keys() const { return keys_; }

  /// Files that split_group says nothing of; the first one, and why.
  [[nodiscard]] std::size_t unmatched() const { return unmatched_; }
  [[nodiscard]] std::size_t first_unmatched() const { return first_unmatched_; }
  [[nodiscard]] std::string why_unmatched() const;

 private:
  [[nodiscard]] std::uint64_t hash(std::string_view text) const;

  const FileListOptions& options_;
  const bool is_wanted_;
  NameRule rule_;
  std::vector<std::uint64_t> keys_;
  std::size_t unmatched_ = 0, first_unmatched_ = 0;
};

}  // namespace melflow
