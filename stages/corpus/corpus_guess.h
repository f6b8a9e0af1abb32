// Finds out how the recordings of a folder are described: by lists of well-known layouts, by a
// table, or by the names of folders.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace melflow {

struct CorpusGuess {
  std::string what;  ///< "a data folder of Kaldi (wav.scp, segments, text)"
  /// Options of file_list that read it, with their values as YAML in one line.
  std::vector<std::pair<std::string, std::string>> options;
};

/// Looks at names in the folder, and at the beginnings of lists. Nullopt where there is neither a
/// known list nor a sound file. Throws RunError where the folder or a list cannot be read.
std::optional<CorpusGuess> guess_corpus(const std::string& folder);

}  // namespace melflow
