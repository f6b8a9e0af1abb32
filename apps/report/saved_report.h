// Reads the document that a run wrote with --json, as far as its speed goes.
#pragma once

#include <string>

#include "apps/profile/comparison.h"

namespace melflow {

/// Throws RunError, with the path and what is wrong, where the file cannot be read, is no report of
/// a run, or of one that did nothing.
RunSpeed read_saved_report(const std::string& path);

/// The comparison of two on one screen; `before`, `after`: what they are called.
std::string comparison_text(const Comparison& comparison, const RunSpeed& before,
                            const RunSpeed& after);

}  // namespace melflow
