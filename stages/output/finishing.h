// The end of an output's run: closes the gaps that failed files left, computes statistics and
// normalises, completes the files and gives them their names; or leaves finished work for a run
// that resumes it. RowSink makes it when the work files are open.
//
// Threads: every call by the run's own thread, when no rows come any more; normalising uses the
// run's threads meanwhile. It calls the writer and the checkpoints without a lock of its own.
// Lifetime: what it uses has to outlive it, and it has to live until the run's last output is
// published (JointPublication), which may be after run(). Errors: RunError from run(), after which
// the output is as it was before the run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage/run_context.h"
#include "pipeline/stage/sink_ledger.h"
#include "stages/output/checkpoints.h"
#include "stages/output/output_sections.h"
#include "stages/output/plan_accounts.h"
#include "stages/output/row_format.h"
#include "stages/output/row_plan.h"
#include "stages/output/row_sink_options.h"
#include "stages/output/row_writer.h"
#include "stages/output/section_file.h"
#include "stages/output/sink_statistics.h"
#include "stages/split_times.h"

namespace melflow {

class Finishing {
 public:
  struct Uses {
    RunContext& run;
    RowFormat& format;
    const RowSinkOptions& target;
    const FeatureInfo& info;
    const MeasureSet& measures;
    const Value& settings;  ///< Stage::feature_settings()
    const OutputSections& sections;
    const RowPlan& plan;
    SinkStatistics& statistics;
    const SinkLedger& ledger;
    RowWriter& writer;
    const SplitTimes* split_times;  ///< null where there are no splits
    std::vector<SectionFile>& files;
    std::unique_ptr<Checkpoints>& checkpoints;  ///< reset where their journal is not needed
    KeptFiles kept, resumed;                    ///< files that the run did not compute
    bool starts_over;  ///< the run updates several outputs, and nothing of it can be resumed
  };
  explicit Finishing(Uses uses) : uses_(std::move(uses)) {}
  /// Removes the work if another output of an update failed: nothing else does.
  ~Finishing();
  Finishing(const Finishing&) = delete;
  Finishing& operator=(const Finishing&) = delete;

  void run(Ending ending);
  /// What became of the output, for the report (Stage::summary()); nothing where it was left.
  /// The files of the output; of a run that has not completed it, those that it works on.
  [[nodiscard]] std::vector<std::string> paths() const;
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const;
  /// The number of rows that the output has.
  [[nodiscard]] std::int64_t rows() const { return rows_; }

 private:
  void finish();
  void complete_files();
  void normalize(std::size_t section);
  void normalize_repaired(std::size_t section);
  void publish();
  void leave_work();
  void drop_work();
  void check_gives_rows() const;
  template <class F>
  void timed(const F& act);
  [[nodiscard]] std::vector<Value> split_summaries() const;

  const Uses uses_;
  bool is_complete_ = false;  // else the run was stopped before all files were done
  bool is_written_ = false;   // the files have their names, or are kept as .part
  std::int64_t rows_ = 0;
  std::vector<Value> splits_;  // for the report
  double sync_seconds_ = 0;    // taken by the option sync
};

}  // namespace melflow
