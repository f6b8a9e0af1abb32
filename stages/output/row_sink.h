// The base of sinks that write rows, for any file format: rows are written in manifest order, each
// as soon as its position is known, and the file gets its name when the run is complete.
//
// In: MelBatch.
//
// The sink of a format chooses the RowPartFile that takes the rows, and completes it. It declares
// kFeatureStage as npy_write does: the features are the same in any format.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/plan/plan.h"
#include "pipeline/stage/stage_kinds.h"
#include "stages/items.h"
#include "stages/output/checkpoints.h"
#include "stages/output/formats/output_index.h"
#include "stages/output/formats/row_part_file.h"
#include "stages/output/output_part.h"
#include "stages/output/output_planner.h"
#include "stages/output/output_sections.h"
#include "stages/output/plan_accounts.h"
#include "stages/output/resumption.h"
#include "stages/output/row_plan.h"
#include "stages/output/row_sink_options.h"
#include "stages/output/row_writer.h"
#include "stages/output/sink_statistics.h"
#include "stages/run_task.h"
#include "stages/split_times.h"

namespace melflow {

class RowSink : public Sink<MelBatch>,
                public HoldsItems,
                public KeepsMemory,
                public NotesLeftOut,
                public Resumes {
 public:
  explicit RowSink(RowSinkOptions options) : target_(std::move(options)) {
    traits_.order = BlockOrder::any;  // each part tells which rows of its file it has
  }
  ~RowSink() override;

  [[nodiscard]] Requirements require(const Requirements& below) const override;
  Properties plan(const Properties& given, const Requirements& below, PlanCheck& check) override;
  [[nodiscard]] std::optional<Value> settings() const override;
  /// The description of the rows; available after plan().
  [[nodiscard]] const FeatureInfo& info() const { return *info_; }
  [[nodiscard]] StageResources resources() const override {
    return {.files_made = files_of(target_.path)};
  }
  [[nodiscard]] std::size_t kept_memory(const RunContext& run, int concurrency) const override;
  void announce(RunContext& run) override;
  void look(RunContext& run) override;
  void start(RunContext& run) override;
  [[nodiscard]] std::optional<std::size_t> resumable(RunContext& run) override;
  void begin(RunContext& run, std::size_t done) override;
  std::optional<ItemError> consume(std::shared_ptr<const MelBatch> in,
                                   ItemContext& context) override;
  void drop_waiting() override;
  void drop_lost() override { writer_->drop_lost(); }
  void left_out(std::size_t index, int stage, const ItemError& why) override;
  void finish(RunContext& run, Ending ending) override;
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override;
  /// The facts that decide the bytes of rows, whatever file they are in; after start().
  [[nodiscard]] RunJournal::Facts row_facts() const;

 protected:
  using Shape = std::vector<std::uint64_t>;  // [rows, columns] or [rows, frames, columns]

  /// The stage's name, for messages.
  [[nodiscard]] virtual const char* stage_name() const = 0;
  /// What `path` has to end in, since the files beside it are named after it; "": in anything.
  [[nodiscard]] virtual const char* ending() const { return ""; }
  /// The paths of all files that make up the output at `path`, one with rows first.
  [[nodiscard]] virtual std::vector<std::string> files_of(const std::string& path) const {
    return {path};
  }
  /// Makes the file that takes the rows; called before the first row.
  [[nodiscard]] virtual std::unique_ptr<RowPartFile> make_row_file(
      const std::string& path, const Opening& opening) const = 0;
  /// The most memory [bytes] that the files use when that many threads write to that many of them.
  [[nodiscard]] virtual std::size_t file_memory(int /*threads*/, std::size_t /*files*/) const {
    return 0;
  }
  /// The byte at which the rows of an output must begin to be extended in place; -1 where outputs
  /// of this format cannot be extended.
  [[nodiscard]] virtual std::int64_t extensible_at() const { return -1; }
  /// Adds everything but the rows to a file from make_row_file(); called after the last row.
  virtual void complete_file(RowPartFile& file, const Shape& shape, const OutputIndex& index) = 0;
  /// The name of the file's layout, for the report; "" where the format has only one.
  [[nodiscard]] virtual std::string layout_name() const { return ""; }
  /// Everything else that decides how the rows are stored.
  [[nodiscard]] virtual std::string layout_facts() const { return layout_name(); }

  /// The hashes of the rows of all files of the run, for a format that changes rows as it completes
  /// a file.
  [[nodiscard]] std::vector<std::uint64_t>& rows_hashes() { return writer_->hashes(); }
  [[nodiscard]] const RowSinkOptions& target() const { return target_; }
  [[nodiscard]] Shape shape_of(std::int64_t rows) const;

 private:
  void check_folder(PlanCheck& check) const;
  void announce_names(const RunContext& run) const;
  [[nodiscard]] PlannedOutput planned(RunContext& run) const;
  void find_places();
  [[nodiscard]] std::unique_ptr<RowPartFile> open_work(const RunContext& run, std::size_t section,
                                                       bool resumes) const;
  void add_in_place();
  void take_back_in_place();
  void drop_work();
  void warn_of_locks(RunContext& run) const;
  void begin_part(const RunContext& run);
  void copy_all(RunContext& run);
  [[nodiscard]] std::unique_ptr<RowPartFile> open_file(const std::string& path,
                                                       const Opening& opening) const;
  void finish_file(RowPartFile& file, std::int64_t rows, const OutputIndex& index);
  void begin_journal(RunContext& run, std::size_t done);
  [[nodiscard]] std::unique_ptr<RunJournal> new_journal(const RunJournal::Facts& facts) const;
  [[nodiscard]] RunJournal::Facts facts() const;
  void give_up_work(const Resume& resume);
  [[nodiscard]] Opening opening(const RunContext& run, bool resumes) const;
  void leave_work(RunContext& run);
  void remove_journal();
  [[nodiscard]] std::vector<std::string> all_files() const;
  void check_files(const RunContext& run) const;
  void complete(RunContext& run);
  void normalize(RunContext& run, std::size_t section);
  void normalize_repaired(const RunContext& run, std::size_t section);
  [[nodiscard]] std::vector<Value> split_summaries(const RunContext& run) const;

  RowSinkOptions target_;
  std::shared_ptr<const FeatureInfo> info_;
  std::string libraries_;              // audio libraries that determine the samples
  bool is_routed_by_content_ = false;  // by every upstream route
  OutputSections sections_;
  std::unique_ptr<OutputPlanner> planner_;  // until it has planned
  RowPlan plan_;
  std::vector<std::unique_ptr<RowPartFile>> files_;  // by section
  // The outputs of sections that get more rows in place. Until all new rows are there, they go to
  // work files in files_; then extended_ and files_ swap these.
  std::vector<std::unique_ptr<RowPartFile>> extended_;
  bool are_in_place_ = false;
  bool is_one_of_several_ = false;  // the run updates several outputs
  std::vector<std::string> works_;  // paths of the work files, by section, without .part
  std::unique_ptr<SinkStatistics> statistics_;
  std::unique_ptr<SinkLedger> ledger_;
  std::unique_ptr<RowWriter> writer_;
  std::unique_ptr<Resumption> resumption_;  // until begin()
  std::unique_ptr<Checkpoints> checkpoints_;
  std::shared_ptr<OutputPart> part_;  // the part that this run makes, or null
  KeptFiles kept_, resumed_;
  std::int64_t rows_ = 0;
  std::unique_ptr<SplitTimes> split_times_;  // where there are splits
  std::vector<Value> splits_;                // by split, for the report
  bool complete_ = false, written_ = false;
  double sync_seconds_ = 0;  // taken by the option sync at the end
};

}  // namespace melflow
