// The text of `inspect`: the contents of an output.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "stages/output/formats/feature_file.h"

namespace melflow {

/// The page about an output; `with_files`: also a line for each file, and every warning.
std::string output_text(const FeatureFile& f, bool with_files);

/// The same and more as a document; `with_files`: also of each file.
nlohmann::ordered_json output_json(const FeatureFile& f, bool with_files);

/// A line for each file of that status: its path, a tab, the reason.
std::string listed_text(const FeatureFile& f, const char* status);

/// A line for each file that was skipped, failed, or is ok with a warning: its path, what became of
/// it, the reason, with tabs between.
std::string all_remarks_text(const FeatureFile& f);

}  // namespace melflow
