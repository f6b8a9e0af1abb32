// The corpus that an output describes as its source, and the stage that wrote the output.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "config/load.h"
#include "pipeline/plan/plan.h"
#include "stages/corpus/frozen_corpus.h"
#include "stages/output/formats/feature_file.h"

namespace melflow {

/// Some files of an output, in ascending order.
struct FilesOf {
  const FeatureFile* output;
  std::vector<std::size_t> files;
};

/// Returns the list of these files, with labels, splits and all else that the outputs say about
/// them, since a route may need it. The list has no stamps. `outputs`: of one run.
std::shared_ptr<FrozenCorpus> corpus_of(const std::vector<FilesOf>& outputs);

/// Throws RunError where the folder of an output's recordings is missing: its path may be relative
/// to the folder in which the command was run, or a disk may not be mounted. `made`: the plan that
/// made the output. Does nothing for a corpus that is no folder of files.
void check_root(const Plan& made, const FeatureFile& output);

/// Returns the plan that made an output, by the configuration in it. Throws RunError where it has
/// none, and ConfigError.
Plan plan_of(const FeatureFile& output, LoadOptions options);

/// Says why the pipeline cannot be updated; "" where it can be.
std::string why_no_update(const Plan& plan);
/// Says what to do about damaged rows of an output that the plan has made.
std::string cure_of(const Plan& made, const std::string& output);

/// Returns the stage that writes the output of a pipeline. Throws RunError, naming the output
/// `path`, where the pipeline has several, or one that does not write rows.
const PlanNode& only_sink(const Plan& plan, const std::string& path);

}  // namespace melflow
