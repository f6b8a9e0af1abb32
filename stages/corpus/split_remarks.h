// What a user should know of the splits of a corpus, as remarks; "" where there is nothing to say.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "stages/corpus/earlier_files.h"
#include "stages/corpus/file_list_options.h"
#include "stages/corpus/split_groups.h"
#include "stages/manifest.h"

namespace melflow {

/// The name of a file's split, or "no split".
std::string_view split_of(const Manifest& manifest, std::size_t file);

/// Files that split_group says nothing of. Throws RunError where splits are drawn and nobody has
/// said what they are.
std::string files_without_group(const FileListOptions& options, const Manifest& manifest,
                                const SplitGroups& groups);
/// Groups of which splits that are given have a part each.
std::string groups_across_splits(const Manifest& manifest, const SplitGroups& groups);
/// Labels that the first split, which is training, has no file of, and another has.
std::string labels_not_in_training(const Manifest& manifest);
/// Files of the earlier output that are in another split now.
std::string moves_between_splits(const Manifest& manifest, const EarlierSplits& earlier);

}  // namespace melflow
