// The text of `inspect`: the contents of an output.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "stages/output/formats/feature_file.h"

namespace melflow {

/// Describes an output on one page; `with_files`: adds a line for each file, and all warnings.
std::string output_text(const FeatureFile& f, bool with_files);

/// Returns this and more as a document; `with_files`: with all files.
nlohmann::ordered_json output_json(const FeatureFile& f, bool with_files);

/// Returns a line for each file of that status: its path, a tab, the reason.
std::string listed_text(const FeatureFile& f, const char* status);

/// Lists up to `most` of the files that failed, were skipped or are ok with a warning; `all`: the
/// option that lists all. "" for none.
std::string stored_remarks_text(const FeatureFile& f, std::size_t most, const char* all);

/// Returns a line for each file that was skipped, failed, or is ok with a warning: its path,
/// outcome and reason, separated by tabs.
std::string all_remarks_text(const FeatureFile& f);

}  // namespace melflow
