// The program melflow, with all stages that are linked in.
#pragma once

namespace melflow {

/// Executes the command line. Returns the exit status (apps/exit_codes.h).
int run_program(int argc, char** argv);

}  // namespace melflow
