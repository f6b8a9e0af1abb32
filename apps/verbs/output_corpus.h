// The corpus that an output was made of, as the output says it; and the stage that wrote it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/plan/plan.h"
#include "stages/corpus/frozen_corpus.h"
#include "stages/output/formats/feature_file.h"

namespace melflow {

/// Some files of an output, ascending.
struct FilesOf {
  const FeatureFile* output;
  std::vector<std::size_t> files;
};

/// The list of these files, with labels, splits and all else that the outputs say of them: a route
/// may ask for it. Without stamps. `outputs`: of one run.
std::shared_ptr<FrozenCorpus> corpus_of(const std::vector<FilesOf>& outputs);

/// Throws RunError where the folder of the recordings that an output was made of is not there: its
/// path may be relative to the folder in which the command was run, or a disk is not mounted.
/// `made`: what made it. A corpus that is no folder of files has none.
void check_root(const Plan& made, const FeatureFile& output);

/// The stage that writes the output of a pipeline. Throws RunError, in the name of the output
/// `path`, where the pipeline has several, or one that does not write rows.
const PlanNode& only_sink(const Plan& plan, const std::string& path);

}  // namespace melflow
