// What does not survive fork(): the threads of this process.
#pragma once

namespace melflow {

/// Throws RunError in a process that was forked off from one in which this was called before.
void check_process();
/// Whether this is such a process: it has no threads that could be waited for.
bool is_forked_off();

}  // namespace melflow
