// The program melflow, with all stages that are linked in.
#pragma once

#include <string>
#include <vector>

namespace melflow {

class Console;

/// Executes the command line. Returns the exit status (apps/exit_codes.h).
int run_program(int argc, char** argv);

/// Executes a verb with its arguments in a process that is not the program: with `input` as the
/// standard input and `console` for what it prints. Throws UsageError, ConfigError and RunError
/// where the program would print them; other failures are printed, and the exit status returned.
int run_program(const std::vector<std::string>& arguments, const std::string& input,
                Console& console);

}  // namespace melflow
