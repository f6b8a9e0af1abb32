// Makes the nodes of a class's instance by its table.
#pragma once

#include "pipeline/base/problem.h"
#include "stages/model_files/instance.h"
#include "stages/model_files/model_front_end.h"

namespace melflow {

/// What the user says beside the file.
struct ModelAssumptions {
  Value keys = Value::map({});        ///< take the place of the file's, and of the call's
  std::vector<std::string> left_out;  ///< keys that have no influence, as the user says
};

/// Adds every key that is neither used nor known to have no influence, and every value that
/// melflow cannot compute, to `problems`; the front end is usable where there are none.
ModelFrontEnd read_class(const ModelInstance& instance, const ModelAssumptions& assumptions,
                         Problems& problems);

/// The tables of all classes, as Markdown.
std::string classes_markdown();

}  // namespace melflow
