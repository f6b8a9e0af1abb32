#include "apps/program.h"

// Where melflow was installed to, for a program that is built elsewhere (melflow_add_program).
#ifndef MELFLOW_SHARED_FILES
#define MELFLOW_SHARED_FILES ""
#endif

int main(int argc, char** argv) { return melflow::run_program(argc, argv, MELFLOW_SHARED_FILES); }
