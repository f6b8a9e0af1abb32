// Decides which thread writes which rows, and when: rows are written in manifest order, each as
// soon as its position is known; rows of files that fail are overwritten; and values that depend on
// a whole file are finished when its last rows have arrived.
//
// Threads: as the parts of the class say. Locks: its mutex is held while parts get their position,
// blocks are hashed and rows that waited for a whole file are finished, but not while other rows
// are written or copied, nor while parts are dropped, which closes records of the ledger, whose
// listeners call back. Under it the mutexes of the statistics, the ledger and a file of chunks are
// taken, and none of these calls back. Errors: a call that may not throw, as a destructor may
// make it, keeps its error for the next one that may.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "pipeline/stage/sink_ledger.h"
#include "pipeline/stage/stage.h"
#include "stages/items.h"
#include "stages/output/output_sections.h"
#include "stages/output/row_plan.h"
#include "stages/output/row_sink_options.h"
#include "stages/output/rows/row_hash.h"
#include "stages/output/rows/row_order.h"
#include "stages/output/section_file.h"
#include "stages/output/sink_statistics.h"

namespace melflow {

class RowWriter {
 public:
  /// The objects that a writer works on; all must outlive it.
  struct Uses {
    const RowSinkOptions& target;
    const FeatureInfo& info;
    const OutputSections& sections;
    const std::vector<SectionFile>& files;  ///< one per section, open before consume()
    const RowPlan& plan;
    SinkStatistics& statistics;
    /// Called when a file was closed, or rows of an existing file were copied; may throw RunError.
    std::function<void()> advanced;
  };
  /// `ledger` must outlive the writer, too, and have `files` files.
  RowWriter(const Uses& uses, const SinkLedger& ledger, std::size_t files);

  /// Before the first row and after the last one, by one thread.
  [[nodiscard]] RowOrder& order() { return order_; }
  /// Subscribes to the run's ledger, which the writer must outlive, to know how each file ended.
  void listen(Ledger& ledger);

  // ---- from any thread

  /// Writes the rows of a batch that have their position, and keeps the others. Throws RunError,
  /// also for what closing a file led to before.
  void consume(const MelBatch& in, ItemContext& context);
  /// Notes that this sink does not get the file; keeps an error for the next consume() or check().
  void left_out(std::size_t file) { closed(file, Outcome::skipped); }
  /// Drops waiting parts of files of which another part was lost in an earlier node.
  void drop_lost();
  /// The number of bytes of rows written so far.
  [[nodiscard]] std::uint64_t bytes_written() const {
    return bytes_.load(std::memory_order_relaxed);
  }
  /// A file of the corpus as the work file has it.
  struct Written {
    std::size_t section = 0;
    bool is_kept = false;  ///< as in the journal
    std::int64_t rows = 0;
    std::uint64_t hash = 0;
    AboutFile about;
  };
  /// Appends to `out` what is written of files [first, first + most), whose records must be closed,
  /// in order, up to the first file with rows that are not all written.
  void written(std::size_t first, std::size_t most, std::vector<Written>& out);

  // ---- when the run is over

  /// Drops rows that still wait for earlier files; a run that ended early leaves some.
  void drop_waiting();
  /// Throws the first error that was kept, if there was one.
  void check();
  /// Copies the rows of earlier files behind the last computed one, and closes the gaps left by
  /// files that failed after their rows had a position (in another branch of the graph).
  void finish();
  /// The hashes of all files' rows; 0 where they are unknown, or there are none.
  [[nodiscard]] std::vector<std::uint64_t>& hashes() { return hashes_; }
  /// The number of files that left a gap. It is chance, so it is for the report, not for the
  /// output.
  [[nodiscard]] std::size_t late_files() const { return late_files_; }

 private:
  void closed(std::size_t file, Outcome outcome);
  void keep_error();
  void refuse_unstorable(const MelBatch& batch, const ItemContext& context) const;
  bool admit(std::vector<PlacedPart>& ready);
  void finish_values(const std::vector<PlacedPart>& ready);
  void hash_blocks(const std::vector<PlacedPart>& ready);
  void hash_overtaken(std::size_t file);
  void lose(std::span<const PlacedPart> parts);
  template <class F>
  void or_lose(std::vector<PlacedPart>& ready, const std::size_t& written, F&& work);
  bool queue(std::vector<PlacedPart>& ready);
  void write(std::vector<PlacedPart>& ready, bool is_writer, std::size_t& written);
  void note_copying(const std::vector<PlacedPart>& ready);
  std::size_t copy(const std::vector<PlacedPart>& ready, std::size_t from);
  [[nodiscard]] std::size_t values_of(std::int64_t rows) const;
  void close_gaps(std::size_t section);

  const Uses uses_;
  const SinkLedger& ledger_;
  std::mutex mutex_;  // guards the members below
  RowOrder order_;
  int stage_ = -1;                  // this stage's number in the streams
  bool writing_ = false;            // where only one thread can write: whether one is writing
  std::vector<PlacedPart> queued_;  // parts for that thread to write
  std::exception_ptr error_;
  bool is_over_ = false;      // no more rows come
  bool is_dropping_ = false;  // whether drop_lost() is under way
  // Rows from this file on may not have been written, even of a file that is closed as ok.
  std::size_t lost_from_ = std::numeric_limits<std::size_t>::max();
  std::set<std::size_t> copying_;  // files with a position whose rows are not copied yet

  std::vector<std::uint64_t> hashes_;  // [files]; each is set by the thread that closes the file
  // The hash of the file whose blocks are arriving, as far as they came in order; with the mutex.
  RowHash hash_;
  std::size_t hashed_ = std::numeric_limits<std::size_t>::max();  // which file
  std::int64_t hashed_rows_ = 0;
  struct Place {
    std::size_t section = 0;
    std::int64_t row = 0;
  };
  std::map<std::size_t, Place> overtaken_;  // files whose blocks came out of order; with the mutex
  std::atomic<std::size_t> overtaken_count_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::size_t late_files_ = 0;
};

}  // namespace melflow
