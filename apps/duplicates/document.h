// What `melflow duplicates` says, as text, JSON and a table.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/duplicates/groups.h"

namespace melflow {

/// Docs: docs/duplicates.md#what-comes-out.
nlohmann::ordered_json duplicates_json(const Duplicates& found);
/// As one of its pairs.
nlohmann::ordered_json pair_json(const Duplicates& found, const LikePair& pair);
/// The first of the pairs, at most `most`: those across splits before others, those that form
/// groups before others, and longer ones before shorter ones.
std::vector<const LikePair*> worst_pairs(const Duplicates& found, std::size_t most);
inline constexpr std::size_t kShownPairs = 20;
/// As printed: kShownPairs of the pairs.
std::string duplicates_text(const Duplicates& found);
/// What a table has for a recording: its split where one of its pairs is of another, "against"
/// where it has none, or "".
std::string across_text(const ListedRecording& recording);
/// A line for each recording that is not old, with its group: a list for file_list. After those of
/// kGroupTable come the columns of the first output that have other names.
std::string duplicates_csv(const Duplicates& found);

}  // namespace melflow
