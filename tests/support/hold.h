// Stages that hand on what they get when the test lets them, so that what happens meanwhile is no
// matter of luck: `hold_file`, behind a list of files, and `hold_batch`.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "tests/support/job.h"

namespace melflow::test {

/// What those stages do in the runs during its life, of which there is one at a time. Without it
/// they hand on everything at once.
class Hold {
 public:
  /// Called on a thread of the stage, for one item after the other, with the number of the file (of
  /// a batch: of its first one); the item goes on when it returns.
  using Hook = std::function<void(std::size_t file)>;
  explicit Hold(Hook hook);
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  Hook hook_;
};

/// The pipeline with a hold_file behind its node `files`.
std::string with_held_files(std::string yaml);

/// Runs a job that is stopped when `closed` files are done, before more than the first `let_in` of
/// them, in the order of the output, are read: it cannot be over before the stop. `let_in` has to
/// fill batches so that `closed` files get done.
struct StopAt {
  std::size_t let_in, closed;
};
JobResult run_and_stop(const std::string& yaml, const LoadOptions& options, StopAt at,
                       Update update = Update::none);

}  // namespace melflow::test
