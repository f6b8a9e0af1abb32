// What the exit status of melflow means; the same list is in docs/pipelines.md.
#pragma once

namespace melflow {

enum ExitCode : int {
  kDone = 0,
  kRunFailed = 1,       ///< also: two features differ (compare), a value disagrees (verify-parity)
  kUsage = 2,           ///< also: what should be compared cannot be read (compare, as diff does)
  kSomeFailed = 3,      ///< done, but some files failed; they are listed
  kStopped = 75,        ///< EX_TEMPFAIL: stopped cleanly before its end
  kConfiguration = 78,  ///< EX_CONFIG: nothing was started
  kInterrupted = 130,   ///< ended by a second Ctrl-C
};

}  // namespace melflow
