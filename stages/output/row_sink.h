// The base of sinks that write rows, for any file format: rows are written in manifest order, each
// as soon as its position is known, and the file gets its name when the run is complete.
//
// In: MelBatch.
//
// The sink of a format implements RowFormat: it chooses the RowPartFile that takes the rows, and
// completes it. It declares kFeatureStage as npy_write does: the features are the same in any
// format.
//
// RowSink puts together what a run needs, by the order of calls in README.md; the work is done by
// the planner (which rows come from where), RowWriter (which thread writes what), Checkpoints and
// Resumption (the journal), and Finishing (the end).
//
// Threads: consume(), drop_lost() and left_out() may be called from any, and so may what the
// ledger tells the writer; every other call comes from the run's own thread, before the first row
// or after the last one. Locks: none of its own; the writer's and the checkpoints' are never held
// together. Errors: consume() keeps those of the writer for the next call (RowWriter); RunError
// from any other call ends the run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/plan/plan.h"
#include "pipeline/stage/stage_kinds.h"
#include "stages/items.h"
#include "stages/output/checkpoints.h"
#include "stages/output/finishing.h"
#include "stages/output/output_planner.h"
#include "stages/output/output_sections.h"
#include "stages/output/plan_accounts.h"
#include "stages/output/resumption.h"
#include "stages/output/row_format.h"
#include "stages/output/row_plan.h"
#include "stages/output/row_sink_options.h"
#include "stages/output/row_writer.h"
#include "stages/output/section_file.h"
#include "stages/output/sink_statistics.h"
#include "stages/run_task.h"
#include "stages/split_times.h"

namespace melflow {

class RowSink : public Sink<MelBatch>,
                public RowFormat,
                public HoldsItems,
                public KeepsMemory,
                public NotesLeftOut,
                public Resumes {
 public:
  explicit RowSink(RowSinkOptions options) : target_(std::move(options)) {
    traits_.order = BlockOrder::any;  // each part tells which rows of its file it has
  }

  [[nodiscard]] Requirements require(const Requirements& below) const override;
  Properties plan(const Properties& given, const Requirements& below, PlanCheck& check) override;
  [[nodiscard]] std::optional<Value> settings() const override { return target_.settings(); }
  /// The description of the rows; available after plan().
  [[nodiscard]] const FeatureInfo& info() const { return *info_; }
  [[nodiscard]] const RowSinkOptions& target() const { return target_; }
  [[nodiscard]] StageResources resources() const override {
    return {.files_made = files_of(target_.path)};
  }
  [[nodiscard]] std::size_t kept_memory(const RunContext& run, int concurrency) const override;
  void announce(RunContext& run) override { announce_names(run); }
  void look(RunContext& run) override;
  void start(RunContext& run) override;
  [[nodiscard]] std::optional<std::size_t> resumable(RunContext& run) override;
  void begin(RunContext& run, std::size_t done) override;
  std::optional<ItemError> consume(std::shared_ptr<const MelBatch> in,
                                   ItemContext& context) override;
  void drop_waiting() override { writer_->drop_waiting(); }
  void drop_lost() override { writer_->drop_lost(); }
  void left_out(std::size_t index, int stage, const ItemError& why) override;
  void finish(RunContext& run, Ending ending) override;
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override;
  /// The files of the output, once a run has written it.
  [[nodiscard]] std::vector<std::string> written() const;
  /// The facts that decide the bytes of rows, whatever file they are in; after start().
  [[nodiscard]] RunJournal::Facts row_facts() const;

 protected:
  /// A sink of the same rows with other options, in place of one that is planned.
  RowSink(const RowSink& planned, RowSinkOptions options);
  /// The hashes of the rows of all files of the run, for a format that changes rows as it completes
  /// a file.
  [[nodiscard]] std::vector<std::uint64_t>& rows_hashes() { return writer_->hashes(); }
  /// After start().
  [[nodiscard]] const SinkStatistics& statistics() const { return *statistics_; }
  /// Null where nothing was to be written.
  [[nodiscard]] const Finishing* finishing() const { return finishing_.get(); }

 private:
  void announce_names(const RunContext& run) const;
  [[nodiscard]] PlannedOutput planned(RunContext& run) const;
  [[nodiscard]] std::vector<std::string> all_files() const;
  void check_files(const RunContext& run, Existing existing) const;
  [[nodiscard]] RunJournal::Facts facts() const;
  void open_files(RunContext& run, std::size_t done);

  RowSinkOptions target_;
  std::shared_ptr<const FeatureInfo> info_;
  MeasureSet measures_;                // of recordings, which the output stores
  std::string libraries_;              // audio libraries that determine the samples
  bool is_routed_by_content_ = false;  // by every upstream route
  OutputSections sections_;
  std::unique_ptr<OutputPlanner> planner_;  // until it has planned
  RowPlan plan_;
  std::vector<SectionFile> files_;
  std::unique_ptr<SinkStatistics> statistics_;
  std::unique_ptr<SinkLedger> ledger_;
  std::unique_ptr<RowWriter> writer_;
  std::unique_ptr<Resumption> resumption_;  // until begin()
  std::unique_ptr<Checkpoints> checkpoints_;
  std::unique_ptr<SplitTimes> split_times_;  // where there are splits
  std::unique_ptr<Finishing> finishing_;     // from begin() on
};

}  // namespace melflow
