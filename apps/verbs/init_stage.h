// A project with a stage of one's own, outside of melflow's tree (melflow init --stage).
#pragma once

#include <string>

namespace melflow {

/// What is wrong with the name of a new stage, and what is allowed; "" where nothing is.
std::string wrong_stage_name(const std::string& name);

/// Makes the folder with the stage `name`, its test, a pipeline and a CMakeLists.txt: the example
/// that comes with melflow, under that name. Throws RunError when anything has the folder's name or
/// it cannot be made; then nothing is left.
void write_stage_project(const std::string& name, const std::string& folder);

/// The folder to be given to CMake as a place of packages; "" where it is not installed with
/// its headers.
std::string installed_prefix();

}  // namespace melflow
