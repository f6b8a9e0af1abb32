// Starts the program within Python, for pipelines with functions of Python.
#pragma once

#include <string>

namespace melflow {

/// Removes empty entries from PYTHONPATH: for these Python would look for modules in the current
/// folder. To be called before a Python is started.
void clean_python_path();

/// Replaces this process by melflow within the Python that MELFLOW_PYTHON names, else the Python of
/// the package that contains the program (MELFLOW_OWN_PYTHON, set by start_program.py), else
/// python3, with the same command line. Returns only if that is not possible: the reason.
std::string start_in_python(int argc, char** argv);

}  // namespace melflow
