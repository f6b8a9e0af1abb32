// Decides which thread writes which rows, and when: rows are written in manifest order, each as
// soon as its place is known; rows of files that fail are overwritten; and values that depend on a
// whole file are finished when its last rows have come.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "pipeline/sink_ledger.h"
#include "pipeline/stage.h"
#include "stages/items.h"
#include "stages/output/earlier_output.h"
#include "stages/output/formats/row_order.h"
#include "stages/output/formats/row_part_file.h"
#include "stages/output/output_sections.h"
#include "stages/output/row_sink_options.h"
#include "stages/output/sink_statistics.h"

namespace melflow {

class RowWriter {
 public:
  /// What a writer works on; everything must outlive it.
  struct Uses {
    const RowSinkOptions& target;
    const FeatureInfo& info;
    const OutputSections& sections;
    const std::vector<std::unique_ptr<RowPartFile>>& files;  ///< one per section, before consume()
    EarlierOutput& earlier;
    SinkStatistics& statistics;
  };
  /// `ledger` outlives it, too, and has so many files.
  RowWriter(const Uses& uses, const SinkLedger& ledger, std::size_t files);

  [[nodiscard]] RowOrder& order() { return order_; }

  // ---- from any thread

  /// Writes the rows of a batch that have their place, and keeps the others. Throws RunError, also
  /// for errors of earlier calls of closed().
  void consume(const MelBatch& in, ItemContext& context);
  /// Notes that a file ended without rows, so that later files need not wait for it. As it may be
  /// called by a destructor, it does not throw but keeps an error for the next call that can.
  void closed(std::size_t file);

  // ---- when the run is over

  /// Drops rows that still wait for earlier files; a run that ended early leaves some.
  void drop_waiting();
  /// Throws the first error of closed(), if there was one.
  void check();
  /// Copies the rows of earlier files behind the last computed one, and closes the gaps that files
  /// left which failed after their rows had a place (in another branch of the graph).
  void finish(RunContext& run);

 private:
  void refuse_unstorable(const MelBatch& batch, const ItemContext& context) const;
  bool admit(std::vector<PlacedPart>& ready);
  void finish_values(const std::vector<PlacedPart>& ready);
  bool queue(std::vector<PlacedPart>& ready);
  void write(std::vector<PlacedPart>& ready, bool is_writer);
  void close_gaps(RunContext& run, std::size_t section);

  const Uses uses_;
  const SinkLedger& ledger_;
  std::mutex mutex_;  // of what follows
  RowOrder order_;
  int stage_ = -1;                  // the number that streams know this stage by
  bool writing_ = false;            // where only one thread can write: whether one does
  std::vector<PlacedPart> queued_;  // for that thread
  std::exception_ptr error_;
  bool is_over_ = false;  // no more rows come
};

}  // namespace melflow
