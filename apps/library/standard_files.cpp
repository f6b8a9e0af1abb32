// The code in HDF5's archive was compiled for programs, where the addresses of stdin, stdout and
// stderr are known at link time. In a shared library they are not: the linker's option --wrap gives
// this library these copies instead.
#include <cstdio>

extern "C" {
extern FILE *__real_stdin, *__real_stdout, *__real_stderr;
FILE *__wrap_stdin, *__wrap_stdout, *__wrap_stderr;

// Runs before any other initialisation.
[[gnu::constructor(101)]] void melflow_copy_standard_files() {
  __wrap_stdin = __real_stdin;
  __wrap_stdout = __real_stdout;
  __wrap_stderr = __real_stderr;
}
}
