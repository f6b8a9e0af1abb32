// Tables that name files, of any kind.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "stages/corpus/guess/guess_parts.h"

namespace melflow::guesses {

/// How to read a table with paths of files below `folder`; nullopt if no column has such paths.
std::optional<CorpusGuess> table(const std::filesystem::path& folder,
                                 const std::filesystem::path& list);
/// The same for the tables in `folder`: those for splits if there are any, else the first.
std::optional<CorpusGuess> tables(const std::filesystem::path& folder);
/// Why a table cannot be used by itself, and what to write.
std::string without_paths(const std::filesystem::path& list);

}  // namespace melflow::guesses
