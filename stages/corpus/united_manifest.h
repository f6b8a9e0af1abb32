// One manifest of those of several sources.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stages/corpus/earlier_files.h"
#include "stages/manifest.h"

namespace melflow {

/// The entries of one manifest behind those of the other, with the names of their sources before
/// their paths (Manifest::recorded_path). Labels and splits are those of all; a target or text that
/// a source does not have is NaN or "". With splits, the entries of each split follow each other,
/// and splits come in the order in which the sources name them. The manifests are closed, and have
/// spans of one unit or none. `names`: of the sources. Takes the manifests apart.
Manifest unite(const std::vector<std::string>& names, std::vector<Manifest>& manifests);

/// What to say where some of the sources have names of that kind (labels, splits) and others have
/// none; "" for nothing. `option`: which makes them; `of`: the names. The manifests are closed.
std::string sources_without(const char* option, const std::vector<std::string>& names,
                            const std::vector<Manifest>& manifests,
                            const std::vector<std::string>& (Manifest::*of)() const);

/// What to say of files that are in more than one source, by their absolute paths; "" for nothing.
std::string files_of_several_sources(const Manifest& united);

/// What is known of all the sources of a run before it begins.
std::shared_ptr<const ManifestFields> unite(
    const std::vector<std::shared_ptr<const ManifestFields>>& fields);

/// The files of an earlier output that are of that source, under their names in it.
EarlierFiles of_source(const EarlierFiles& all, const std::string& name);

}  // namespace melflow
