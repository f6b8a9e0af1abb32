#include "apps/verbs.h"

int main(int argc, char** argv) { return melflow::run_program(argc, argv); }
