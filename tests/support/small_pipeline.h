// Shared helpers of sink tests: a few short recordings, and the nodes that compute rows from them.
#pragma once

#include <string>

#include "tests/support/audio_files.h"
#include "tests/support/temp_folder.h"

namespace melflow::test {

constexpr int kRate = 8000;  ///< of the recordings [Hz]

/// Returns the lines of a graph from `files` (root ${DATA}) to `mel`, with 20 bands; each node can
/// have further options, such as "log: db".
std::string nodes_to_mel(const std::string& files, const std::string& decode,
                         const std::string& segment, const std::string& mel);

/// Makes good recordings and others, in two folders of clips/.
void make_corpus(const TempFolder& folder);

}  // namespace melflow::test
