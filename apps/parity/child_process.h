// Runs another program and waits for it.
#pragma once

#include <string>
#include <vector>

namespace melflow {

/// Runs `command`, a program (found on PATH when it has no slash) and its arguments, with stdout
/// and stderr written to the file `output`. Returns the exit status, or 128 + the number of the
/// signal that ended it. Throws RunError when it cannot be started.
int run_child(std::vector<std::string> command, const std::string& output);

}  // namespace melflow
