// Writes checkpoints to a run's journal: an interrupted run loses no more than the work since the
// last one.
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
#include "stages/output/formats/row_part_file.h"
#include "stages/output/row_writer.h"
#include "stages/output/run_journal.h"

namespace melflow {

class Checkpoints {
 public:
  static constexpr std::chrono::seconds kTime{5};  ///< between two commits, at most

  struct Uses {
    RunContext& run;
    const SinkLedger& ledger;
    RowWriter& writer;
    const std::vector<std::unique_ptr<RowPartFile>>& files;
    std::uint64_t bytes;  ///< of rows between two commits, at most
    bool sync;            ///< what a commit says is on disk before it
    bool syncs_begin;     ///< that the files are its own is on disk from the beginning
  };
  /// `journal` has commits on the first `committed` files. Everything in `uses` must outlive this
  /// one. Throws RunError.
  Checkpoints(std::unique_ptr<RunJournal> journal, std::size_t committed, const Uses& uses);
  /// Removes a journal that says nothing.
  ~Checkpoints() {
    if (committed_ == 0) remove();
  }
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  /// To be called whenever a file is closed in the ledger; from any thread. Throws RunError.
  void closed();
  /// Commits all files that are done. Throws RunError.
  void commit();
  /// From now on the work files change in other ways. Throws RunError.
  void ending();
  /// The output, whose files have these hashes, is about to have its name. On disk when it returns.
  /// Throws RunError.
  void complete(std::vector<std::string> hashes);
  /// Adds a record for so many files that are under way, each empty (RunJournal). Throws RunError.
  LogFile::Mapped note_under_way(std::size_t entries);
  /// The output is published.
  void remove() const { journal_->log().remove(); }

  /// How many files, and how many rows of the work files, the journal has; to be called when
  /// nothing else is.
  [[nodiscard]] std::size_t files() const { return committed_; }
  [[nodiscard]] std::int64_t rows() const;

 private:
  void commit_all();
  [[nodiscard]] bool take(std::vector<RunJournal::File>& out);

  const Uses uses_;
  std::mutex mutex_;  // of what follows
  std::unique_ptr<RunJournal> journal_;
  std::size_t committed_ = 0;
  std::vector<std::int64_t> rows_;  // of each section, where the next file's begin
  std::vector<RowWriter::Written> written_;

  using Clock = std::chrono::steady_clock;
  std::atomic<Clock::time_point> last_{Clock::now()};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace melflow
