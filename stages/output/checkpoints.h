// Writes checkpoints to a run's journal, so that an interrupted run loses no more than the work
// since the last one.
//
// Threads: closed() from any; the others from the run's own thread. Locks: its mutex is held while
// a commit is written, and under it the writer's is taken (RowWriter::written()), never the other
// way round. Errors: RunError where the journal cannot be written; the run ends then, since work
// that is not noted would be lost.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/stage/run_context.h"
#include "pipeline/stage/sink_ledger.h"
#include "stages/output/row_writer.h"
#include "stages/output/run_journal.h"
#include "stages/output/section_file.h"

namespace melflow {

class Checkpoints {
 public:
  static constexpr std::chrono::seconds kTime{5};  ///< between two commits, at most

  struct Uses {
    RunContext& run;
    const SinkLedger& ledger;
    RowWriter& writer;
    const std::vector<SectionFile>& files;  ///< open
    std::uint64_t bytes;                    ///< of rows between two commits, at most
    bool sync;                              ///< flush the rows of a commit to disk before it
    bool syncs_begin;     ///< flush the beginnings of the files, which show whose they are
    bool commits = true;  ///< false: the journal only names the work files' owner
  };
  /// `journal` has commits for the first `committed` files. Everything in `uses` must outlive this
  /// object. Throws RunError.
  Checkpoints(std::unique_ptr<RunJournal> journal, std::size_t committed, const Uses& uses);
  /// Removes a journal without commits.
  ~Checkpoints() {
    if (committed_ == 0) remove();
  }
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  /// To be called whenever a file is closed in the ledger; from any thread. Throws RunError.
  void closed();
  /// Commits all files that are done. Throws RunError.
  void commit();
  /// Notes that the work files change in other ways from now on. Throws RunError.
  void ending();
  /// Notes that the output, whose files have these hashes, is about to get its name. The note is on
  /// disk when it returns. Throws RunError.
  void complete(std::vector<std::string> hashes);
  /// Adds a record of `entries` empty entries for files in progress (RunJournal). Throws RunError.
  LogFile::Mapped note_under_way(std::size_t entries);
  /// To be called when the output is published.
  void remove() const { journal_->log().remove(); }

  /// The number of files, and of rows of the work files, in the journal; to be called when no other
  /// call is in progress.
  [[nodiscard]] std::size_t files() const { return committed_; }
  [[nodiscard]] std::int64_t rows() const;

 private:
  void commit_all();
  [[nodiscard]] bool take(std::vector<RunJournal::File>& out);

  const Uses uses_;
  std::mutex mutex_;  // guards the members below
  std::unique_ptr<RunJournal> journal_;
  std::size_t committed_ = 0;
  std::vector<std::int64_t> rows_;  // by section: where the next file's rows begin
  std::vector<RowWriter::Written> written_;

  using Clock = std::chrono::steady_clock;
  std::atomic<Clock::time_point> last_{Clock::now()};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace melflow
