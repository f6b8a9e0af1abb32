// System calls that are refused from now on, to this thread and those that it starts.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace melflow::test {

/// io_uring: as in most containers. o_tmpfile: as on NFS, FUSE and some overlays.
enum class RefusedCall { io_uring, o_tmpfile };

/// Returns whether the system took the rule.
inline bool refuse(RefusedCall call) {
  sock_filter io_uring[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  // The lower half of an argument is its first one, on x86-64 and on 64-bit Arm.
  sock_filter o_tmpfile[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog rules = call == RefusedCall::io_uring
                               ? sock_fprog{sizeof io_uring / sizeof *io_uring, io_uring}
                               : sock_fprog{sizeof o_tmpfile / sizeof *o_tmpfile, o_tmpfile};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &rules) == 0;
}

}  // namespace melflow::test
