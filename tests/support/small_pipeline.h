// What tests of sinks have in common: a few short recordings, and the nodes that make rows of them.
#pragma once

#include <string>

#include "tests/support/audio_files.h"
#include "tests/support/temp_folder.h"

namespace melflow::test {

constexpr int kRate = 8000;  ///< of the recordings [Hz]

/// Lines of a graph from `files` (root ${DATA}) to `mel`, of 20 bands; each with further options,
/// such as "log: db".
std::string nodes_to_mel(const std::string& files, const std::string& decode,
                         const std::string& segment, const std::string& mel);

/// Good recordings and others, in two folders of clips/.
void make_corpus(const TempFolder& folder);

}  // namespace melflow::test
