// Stages that pass their input on when the test lets them, so that the order of events does not
// depend on timing: `hold_file`, after a list of files, and `hold_batch`.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "tests/support/job.h"

namespace melflow::test {

/// Controls those stages in the runs during its lifetime, of which there may be one at a time.
/// Without a Hold they pass everything on at once.
class Hold {
 public:
  /// Called on a thread of the stage, for one item after the other, with the number of the file
  /// (for a batch, of its first file); the item continues when it returns.
  using Hook = std::function<void(std::size_t file)>;
  explicit Hold(Hook hook);
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  Hook hook_;
};

/// Adds a hold_file after the node `files` of a pipeline.
std::string with_held_files(std::string yaml);

/// Runs a job that is stopped when `closed` files are done, while only the first `let_in` files, in
/// the order of the output, are read: it cannot end before the stop. `let_in` must fill enough
/// batches for `closed` files to get done.
struct StopAt {
  std::size_t let_in, closed;
};
JobResult run_and_stop(const std::string& yaml, const LoadOptions& options, StopAt at,
                       Update update = Update::none);

}  // namespace melflow::test
