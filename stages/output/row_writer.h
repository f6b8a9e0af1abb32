// Which thread writes which rows, and when: rows go to their place in manifest order as soon as
// that is known, rows of files that fail are written over, and values that need a whole file are
// finished when it is there.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

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
  /// All outlive this one.
  struct Uses {
    const RowSinkOptions& target;
    const FeatureInfo& info;
    const OutputSections& sections;
    const std::vector<std::unique_ptr<RowPartFile>>& files;  ///< one a section, from consume() on
    EarlierOutput& earlier;
    SinkStatistics& statistics;
  };
  RowWriter(const Uses& uses, Ledger& ledger);

  [[nodiscard]] RowOrder& order() { return order_; }

  // ---- from any thread

  /// Throws RunError, also for what went wrong in closed().
  void consume(const MelBatch& in, ItemContext& context);
  /// A file ended without rows: those behind it need not wait for it. Called where a stream ends,
  /// which may be in a destructor: an error is kept for the next call that can throw.
  void closed(std::size_t file);

  // ---- when the run is over

  /// Drops what waits for its turn; a run that ended early leaves some.
  void drop_waiting();
  /// Throws what went wrong in closed().
  void check();
  /// Writes files that are taken over and stand behind the last one that was computed, and moves
  /// rows over those of files that failed after they were placed (in another branch of the graph).
  void finish(RunContext& run);

 private:
  void refuse_unstorable(const MelBatch& batch, const ItemContext& context) const;
  bool admit(std::vector<PlacedPart>& ready);
  void finish_values(const std::vector<PlacedPart>& ready);
  bool queue(std::vector<PlacedPart>& ready);
  void write(std::vector<PlacedPart>& ready, bool is_writer);
  void close_gaps(RunContext& run, std::size_t section);

  const Uses uses_;
  std::mutex mutex_;  // of what follows
  RowOrder order_;
  int stage_ = -1;                  // as streams have it
  bool writing_ = false;            // somebody is, where only one can
  std::vector<PlacedPart> queued_;  // for that one
  std::exception_ptr error_;
  bool is_over_ = false;  // nothing more comes
};

}  // namespace melflow
