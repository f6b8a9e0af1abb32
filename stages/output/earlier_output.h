// The output of an earlier run, where this run is an update of it: which of its rows are still
// right, whether they stay where they are or are taken over into a new file, and what goes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage.h"
#include "stages/corpus/earlier_files.h"
#include "stages/corpus/update.h"
#include "stages/items.h"
#include "stages/output/formats/row_order.h"
#include "stages/output/formats/row_part_file.h"
#include "stages/output/output_sections.h"
#include "stages/output/row_reuse.h"
#include "stages/output/row_sink_options.h"
#include "stages/output/sink_statistics.h"

namespace melflow {

/// Throws RunError where an output of this run has rows already and no file of the run gave any:
/// what is wrong with every file is wrong with the run (a disk, an option), and not worth them.
void check_gives_rows(const RunContext& run, const std::vector<std::string>& paths);

class EarlierOutput {
 public:
  /// `target` outlives this one.
  explicit EarlierOutput(const RowSinkOptions& target) : target_(target) {}

  /// For the source, before the sink starts: every file of the output and those beside it, which
  /// are called after `splits` or splits that they have. Throws RunError for other features.
  void visit(const std::string& feature_fingerprint, const std::vector<std::string>& splits,
             const EarlierFiles::Visit& visit);
  /// Looks at the output of every section, before anything is touched. Throws RunError where it
  /// cannot be gone on with, or too much of it would be dropped.
  void match(RunContext& run, const OutputSections& sections, const FeatureInfo& info,
             const std::string& feature_fingerprint);
  /// There is one.
  [[nodiscard]] bool is_there() const { return is_there_; }

  /// Instead of keep(), for all sections: what the update would do.
  void preview(RunContext& run, const OutputSections& sections, std::int64_t extensible_at,
               UpdatePreview& out);
  /// Closes the files of a section whose rows are kept. Returns how many rows the output has, where
  /// they stay and new ones come behind them; they begin at byte `extensible_at` then.
  std::optional<std::int64_t> keep(RunContext& run, std::size_t section, std::int64_t extensible_at,
                                   RowOrder& order, SinkStatistics& statistics);
  /// After that: rows of the section are taken over.
  [[nodiscard]] bool gives_rows(std::size_t section) const { return given_[section] != nullptr; }
  /// Copies rows of files that are taken over, from ready[from] on as long as they stand side by
  /// side in the earlier output, too. Returns which comes next. From any thread.
  std::size_t take_over(const std::vector<PlacedPart>& ready, std::size_t from,
                        RowPartFile& file) const;

  /// For the report.
  [[nodiscard]] std::size_t kept_files() const { return kept_files_; }
  [[nodiscard]] std::size_t dropped_files() const { return dropped_.files; }

 private:
  [[nodiscard]] std::unique_ptr<RowReuse> match(RunContext& run, const OutputSections& sections,
                                                std::size_t section, const FeatureInfo& info,
                                                const std::string& feature_fingerprint);
  [[nodiscard]] static bool stays(const RowReuse& old, const RunContext& run,
                                  std::int64_t extensible_at);
  void check_dropped(const RunContext& run);
  void forget_opened(const RunContext& run);

  const RowSinkOptions& target_;
  // That the source asked for, by path, until match(); null for one that is not there.
  std::map<std::string, std::unique_ptr<RowReuse>> opened_;
  bool is_there_ = false;
  std::vector<std::unique_ptr<RowReuse>> matched_;      // of each section, or none, until keep()
  std::vector<std::unique_ptr<const RowReuse>> given_;  // whose rows are taken over, or none
  std::map<std::size_t, std::int64_t> rows_;            // where each file's begin there
  DroppedRows dropped_;
  std::size_t kept_files_ = 0;
};

}  // namespace melflow
