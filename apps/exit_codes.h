// The exit statuses of melflow; docs/pipelines.md has the same list.
#pragma once

namespace melflow {

enum ExitCode : int {
  kDone = 0,
  kRunFailed = 1,   ///< also: features differ (compare), or a value disagrees (verify-parity)
  kUsage = 2,       ///< also: a file to be compared cannot be read (compare, as in diff)
  kSomeFailed = 3,  ///< done, but some files failed; the report lists them
  kNotAsExpected =
      4,          ///< done, but not as `expect` in the configuration wants; the last lines say how
  kStopped = 75,  ///< EX_TEMPFAIL: stopped cleanly before its end
  kConfiguration = 78,  ///< EX_CONFIG: nothing was started
  kInterrupted = 130,   ///< ended by a second Ctrl-C
};

}  // namespace melflow
