// Draws the splits of a corpus from shares (splits: ratio). The files of a group (split_group) have
// one key and stay together; files of an earlier output stay in their split.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stages/corpus/earlier_files.h"
#include "stages/corpus/file_list_options.h"
#include "stages/corpus/name_rule.h"
#include "stages/manifest.h"

namespace melflow {

class SplitGroups {
 public:
  /// The key of entries for which no split is drawn: those that are no recording, and with
  /// split_unmatched: no_split files without a group.
  static constexpr std::uint64_t kNone = 0;

  /// The key of the group with this name.
  static std::uint64_t key_of(std::string_view name, std::uint64_t seed);

  explicit SplitGroups(const FileListOptions& options);

  /// Whether groups are needed; else none is added.
  [[nodiscard]] bool are_wanted() const { return are_wanted_; }
  /// Adds the next file. `path`: relative to the root; `cell`: the manifest's cell in the column
  /// that the group's rule names, "" where it names none.
  void add(std::string_view path, std::string_view cell);
  /// Adds an entry that is no recording, such as a folder that cannot be listed.
  void add_other();
  /// The key of every entry, hashed with the seed; empty where no groups are needed.
  [[nodiscard]] const std::vector<std::uint64_t>& keys() const { return keys_; }

  /// The name of a file's group, as add() finds it.
  [[nodiscard]] std::string_view name_of(std::string_view path, std::string_view cell) const {
    return rule_.name_of(path, cell);
  }
  /// The number of files without a group; the index of the first of them; and the reason, as text.
  [[nodiscard]] std::size_t unmatched() const { return unmatched_; }
  [[nodiscard]] std::size_t first_unmatched() const { return first_unmatched_; }
  [[nodiscard]] std::string why_unmatched() const;

 private:
  const FileListOptions& options_;
  const bool are_wanted_;
  NameRule rule_;
  std::vector<std::uint64_t> keys_;
  std::size_t unmatched_ = 0, first_unmatched_ = 0;
};

/// Returns the number of each file's split in split_ratios, -1 for none. `keys`:
/// SplitGroups::keys(). Throws RunError when a split would have no files, or when the splits of the
/// earlier output cannot be kept.
std::vector<std::int8_t> draw_splits(const FileListOptions& options, const Manifest& manifest,
                                     const std::vector<std::uint64_t>& keys,
                                     const EarlierSplits& earlier);

}  // namespace melflow
