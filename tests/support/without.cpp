// Runs a program to which a system call is refused.
//
// In:  without io_uring|o_tmpfile PROGRAM [ARGUMENT...]
// Out: that of the program; exit status 125 when the rule cannot be set.
#include <string.h>
#include <unistd.h>

#include "tests/support/refused_call.h"

int main(int, char** argv) {
  using melflow::test::RefusedCall;
  const auto call =
      strcmp(argv[1], "io_uring") == 0 ? RefusedCall::io_uring : RefusedCall::o_tmpfile;
  if (!melflow::test::refuse(call)) return 125;
  execv(argv[2], argv + 2);
  return 125;
}
