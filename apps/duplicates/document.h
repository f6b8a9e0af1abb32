// What `melflow duplicates` says, as text, JSON and a table.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/duplicates/groups.h"

namespace melflow {

/// Docs: docs/duplicates.md#what-comes-out.
nlohmann::ordered_json duplicates_json(const Duplicates& found);
/// As printed: the first pairs of each group.
std::string duplicates_text(const Duplicates& found);
/// A line for each recording that is not old, with its group: a list for file_list. After those of
/// kGroupTable come the columns of the first output. `across` is the recording's split where one of
/// its pairs is of another, or "against" without splits.
std::string duplicates_csv(const Duplicates& found);

}  // namespace melflow
