// Describes what an update would do (`melflow update --dry-run`), as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pipeline/report.h"
#include "pipeline/runner.h"
#include "stages/corpus/update.h"

namespace melflow {

/// The text names at most `limit` of `changes`, the files that would be computed, with the reasons.
std::string preview_text(const UpdatePreview& preview, const RunReport& report,
                         const std::vector<Remark>& changes, std::size_t limit);
nlohmann::ordered_json preview_json(const UpdatePreview& preview, const RunReport& report,
                                    const std::vector<Remark>& changes, int exit_code);

}  // namespace melflow
