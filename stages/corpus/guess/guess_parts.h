// What guesses about the lists of a corpus have in common.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "stages/corpus/guess/corpus_guess.h"

namespace melflow::guesses {

using Texts = std::vector<std::string>;

/// A text of the corpus as the value of an option, such that it is read back as just that text.
Value text(const std::string& text);
/// A word that the option itself defines, as its value.
Value word(const std::string& word);
Value words(const Texts& words);
using Entries = std::vector<std::pair<std::string, Value>>;
Value map(const Entries& entries);
/// Whether a text is the value, or one in it.
bool mentions(const Value& value, const std::string& text);
bool has(const std::filesystem::path& path);
/// The names in a folder, ascending; none where it cannot be listed.
Texts names_in(const std::filesystem::path& folder);
std::string first_line(const std::filesystem::path& list);
/// At most so many names, and how many more there are.
std::string some_of(const Texts& names);
/// The last part of a path.
std::string name_of(const std::string& path);

/// A list, and its columns that are stored.
struct Listed {
  std::string path;
  Texts columns;
};
/// Sets the option `columns` to those that all lists have, and remarks on the others.
void take_columns(const std::vector<Listed>& lists, CorpusGuess& out);

using SplitLists = std::vector<std::pair<std::string, std::string>>;  ///< names, and their lists
/// The splits of several lists, by the part in which their names differ: train_manifest.json and
/// val_manifest.json are train and val. Empty unless all are names of splits.
SplitLists lists_by_split(const Texts& lists);
/// The value of the option `manifest` for such lists.
Value map_of(const SplitLists& lists);
/// Returns the lists whose names contain the name of a split.
Texts named_after_splits(const Texts& lists);

}  // namespace melflow::guesses
