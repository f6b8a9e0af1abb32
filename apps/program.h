// The program melflow, with any stages that are linked in.
#pragma once

#include <string>

namespace melflow {

/// Reads the command line and does what it asks for. Returns the exit status (apps/exit_codes.h).
/// `shared_files`: the folder of the files that come with melflow (share/melflow of an
/// installation), where the program is neither installed beside it nor in melflow's build folder.
int run_program(int argc, char** argv, const std::string& shared_files = "");

}  // namespace melflow
