// Reads the figures of speed from the document that a run wrote with --json.
#pragma once

#include <string>

#include "apps/profile/comparison.h"

namespace melflow {

/// Throws RunError, with the path and what is wrong, where the file cannot be read, is no report of
/// a run, or of one that did nothing.
RunSpeed read_saved_report(const std::string& path);

/// The comparison of two on one screen; `before`, `after`: their names.
std::string comparison_text(const Comparison& comparison, const RunSpeed& before,
                            const RunSpeed& after);

}  // namespace melflow
