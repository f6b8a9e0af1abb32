// Reads speed figures from the document that a run wrote with --json.
#pragma once

#include <string>

#include "apps/profile/comparison.h"

namespace melflow {

/// Throws RunError, with path and reason, where the file cannot be read, is no report of a run, or
/// the run processed nothing.
RunSpeed read_saved_report(const std::string& path);

/// Returns a comparison of two runs that fits one screen; `before`, `after`: their names.
std::string comparison_text(const Comparison& comparison, const RunSpeed& before,
                            const RunSpeed& after);

}  // namespace melflow
