// Starts the program within Python, for pipelines with functions of Python.
#pragma once

#include <string>

namespace melflow {

/// Replaces this process by Python's melflow with the same command line. Returns only where that is
/// not possible: why. Python is python3, or what MELFLOW_PYTHON names.
std::string start_in_python(int argc, char** argv);

}  // namespace melflow
