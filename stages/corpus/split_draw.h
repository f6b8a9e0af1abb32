// Draws the splits of a corpus from shares (splits: ratio): groups stay together, and files of an
// earlier output stay in their split.
#pragma once

#include <cstdint>
#include <vector>

#include "stages/corpus/earlier_files.h"
#include "stages/corpus/file_list_options.h"
#include "stages/manifest.h"

namespace melflow {

/// The number of each file's split in split_ratios, -1 for none. `keys`: SplitGroups::keys().
/// Throws  RunError when a split would have no files, or when the splits of the earlier output
/// cannot be kept.
std::vector<std::int8_t> draw_splits(const FileListOptions& options, const Manifest& manifest,
                                     const std::vector<std::uint64_t>& keys,
                                     const EarlierSplits& earlier);

}  // namespace melflow
