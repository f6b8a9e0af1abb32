// Describes what an update would do (`melflow update --dry-run`), as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pipeline/report/report.h"
#include "pipeline/run/runner.h"
#include "stages/corpus/update.h"

namespace melflow {

/// The text names at most `limit` of `changes`, the files that would be computed for any of the
/// outputs, with the reasons.
std::string preview_text(const UpdatePreview& preview, const std::vector<Remark>& changes,
                         std::size_t limit);
/// With several outputs, each is an element of "outputs".
nlohmann::ordered_json preview_json(const UpdatePreview& preview, const RunReport& report,
                                    const std::vector<Remark>& changes, int exit_code);
/// Why the update would not begin, a line for each output that refuses; "" where none does.
std::string refusals_of(const UpdatePreview& preview);

}  // namespace melflow
