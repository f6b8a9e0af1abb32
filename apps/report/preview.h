// Describes the effects of an update (`melflow update --dry-run`), as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pipeline/report/report.h"
#include "pipeline/run/runner.h"
#include "stages/run_task.h"

namespace melflow {

/// Returns the text, which names at most `limit` of `changes`: the files that would be computed for
/// any output, with reasons.
std::string preview_text(const UpdatePreview& preview, const std::vector<Remark>& changes,
                         std::size_t limit);
/// Returns the document. With several outputs, each is an element of "outputs".
nlohmann::ordered_json preview_json(const UpdatePreview& preview, const RunReport& report,
                                    const std::vector<Remark>& changes, int exit_code);
/// Returns why the update would not begin, a line per output that refuses; "" if none does.
std::string refusals_of(const UpdatePreview& preview);

}  // namespace melflow
