// Unites the manifests of several sources into one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stages/manifest.h"
#include "stages/run_task.h"

namespace melflow {

/// Puts the entries of all manifests behind each other, with the names of their sources before
/// their paths (Manifest::recorded_path). Labels and splits are those of all; a target or text that
/// a source lacks is NaN or "". With splits, the entries of each split follow each other, and
/// splits come in the order in which the sources name them. The manifests must be closed, and have
/// spans of one unit or none. `names`: those of the sources. Empties `manifests`.
Manifest unite(const std::vector<std::string>& names, std::vector<Manifest>& manifests);

/// Returns a warning where some sources have names of a kind (labels, splits) and others have none,
/// else "". `option`: makes such names; `of`: returns them. The manifests must be closed.
std::string sources_without(const char* option, const std::vector<std::string>& names,
                            const std::vector<Manifest>& manifests,
                            const std::vector<std::string>& (Manifest::*of)() const);

/// Returns a warning about files that are in several sources, by their absolute paths, else "".
std::string files_of_several_sources(const Manifest& united);

/// Unites the fields of all sources, known before the run.
std::shared_ptr<const ManifestFields> unite(
    const std::vector<std::shared_ptr<const ManifestFields>>& fields);

/// Returns the files of earlier outputs that are of that source, under their names in it.
std::vector<EarlierFile> of_source(const std::vector<EarlierFile>& all, const std::string& name);

}  // namespace melflow
