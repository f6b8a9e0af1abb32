// The program melflow, with any stages that are linked in.
#pragma once

namespace melflow {

/// Reads the command line and does what it asks for. Returns the exit status (apps/exit_codes.h).
int run_program(int argc, char** argv);

}  // namespace melflow
