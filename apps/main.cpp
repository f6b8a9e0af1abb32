#include "apps/program.h"

int main(int argc, char** argv) { return melflow::run_program(argc, argv); }
