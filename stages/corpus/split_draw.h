// The splits of a corpus where only shares are given (splits: ratio): groups stay together, files
// of an earlier output stay where they are.
#pragma once

#include <cstdint>
#include <vector>

#include "stages/corpus/earlier_files.h"
#include "stages/corpus/file_list_options.h"
#include "stages/manifest.h"

namespace melflow {

/// The number of each file's split among split_ratios, -1 for none. `keys` as SplitGroups has them.
/// Throws RunError where a split would have no files, or where what the earlier output says cannot
/// be kept.
std::vector<std::int8_t> draw_splits(const FileListOptions& options, const Manifest& manifest,
                                     const std::vector<std::uint64_t>& keys,
                                     const EarlierSplits& earlier);

}  // namespace melflow
