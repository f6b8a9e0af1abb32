// Finds out how the recordings of a folder, an archive or a list are described: by lists of
// well-known layouts, by a table, by the names of folders, or by files beside the recordings.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/base/value.h"

namespace melflow {

struct CorpusGuess {
  /// "a data folder of Kaldi (wav.scp, segments, text)". Like the remarks it may contain names from
  /// the corpus, which are any bytes: for a terminal or a comment it has to be put on one line.
  std::string what;
  std::vector<std::pair<std::string, Value>> options;  ///< of file_list, which reads it by them
  std::vector<std::string> remarks = {};  ///< on what is there and not used, a sentence each
};

/// Looks at names in the folder or archive, and at the beginnings of lists. `given`: a folder, an
/// archive, a pattern of archives, or a list. Nullopt where there is neither a known list nor a
/// sound file. Throws RunError where it, or a list in it, cannot be read, or where `given` is a
/// table none of whose columns has paths of files.
std::optional<CorpusGuess> guess_corpus(const std::string& given);

}  // namespace melflow
