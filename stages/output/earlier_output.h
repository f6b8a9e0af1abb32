// The output of an earlier run that this run updates: which of its rows are still valid, whether
// they stay in place or are copied to a new file, and which are dropped.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage/sink_ledger.h"
#include "pipeline/stage/stage.h"
#include "stages/corpus/earlier_files.h"
#include "stages/corpus/update.h"
#include "stages/items.h"
#include "stages/output/formats/row_part_file.h"
#include "stages/output/output_sections.h"
#include "stages/output/row_reuse.h"
#include "stages/output/row_sink_options.h"
#include "stages/output/rows/row_order.h"
#include "stages/output/sink_statistics.h"

namespace melflow {

/// Throws RunError when an output at `paths` has rows and no file of this run made any: an error in
/// every file comes from the run itself (a disk, an option), and must not replace those rows.
void check_gives_rows(const RunContext& run, const std::vector<std::string>& paths);

class EarlierOutput {
 public:
  /// `target` must outlive this object.
  explicit EarlierOutput(const RowSinkOptions& target) : target_(target) {}

  /// Sets whether the run may change what it finds; before the first visit().
  void begin(const RunContext& run) { may_change_ = !is_preview(run); }
  /// Calls `visit` for every file of the output and of outputs beside it that are named after
  /// `splits` or after splits found in them. For the source, before the sink starts. Throws
  /// RunError for an output with other features.
  void visit(const std::string& feature_fingerprint, const std::vector<std::string>& splits,
             const EarlierFiles::Visit& visit);
  /// Finds the rows that are still valid in every section's output, and tells the other sinks of
  /// the run about them (KeptItems) in the name of `sink`; changes nothing yet. Throws RunError
  /// when an output cannot be updated, or too much of it would be dropped. `are_routes_kept`: files
  /// that a route sent to another output by their content are not read again.
  void match(RunContext& run, const Stage& sink, const OutputSections& sections,
             const FeatureInfo& info, const std::string& feature_fingerprint, bool are_routes_kept);
  /// Whether match() found an earlier output.
  [[nodiscard]] bool is_there() const { return is_there_; }

  // To be called after match(), before keep() or preview().
  /// The statistics by which the rows are normalised. Throws RunError where there are none.
  [[nodiscard]] const ColumnStatistics& statistics() const;
  /// The number of rows in a section's output where they stay in place and new ones are appended;
  /// they begin at byte `extensible_at`. Nothing where rows are copied.
  [[nodiscard]] std::optional<std::int64_t> rows_in_place(const RunContext& run,
                                                          std::size_t section,
                                                          std::int64_t extensible_at) const;
  /// index_hash() of a section's output; "" without one.
  [[nodiscard]] std::string hash(std::size_t section) const;
  /// Whether the rows of a file of the section are kept.
  [[nodiscard]] bool is_kept(std::size_t section, std::size_t file) const;

  /// Reports what the update would do, in place of keep(), for all sections. The last sink of the
  /// run closes the files in the ledger.
  void preview(RunContext& run, const OutputSections& sections, std::int64_t extensible_at,
               UpdatePreview& out);
  /// The objects that keep() works on.
  struct Into {
    RunContext& run;
    SinkLedger& ledger;
    RowOrder& order;
    SinkStatistics& statistics;
    std::vector<std::uint64_t>& hashes;
  };
  /// Closes in the ledger the files of a section whose rows are kept by all sinks of the run; the
  /// other files are computed again for the sinks that lack them. `in_place`: whether
  /// rows_in_place() returned a number.
  void keep(const Into& into, std::size_t section, bool in_place);
  /// Copies to `file` the rows of ready[from] and of the following entries whose rows are also
  /// neighbours in the earlier output, up to the amount between two checkpoints. Returns the next
  /// entry. From any thread.
  std::size_t take_over(const std::vector<PlacedPart>& ready, std::size_t from,
                        RowPartFile& file) const;

  /// The hash of the rows that a file has in its section's output, where rows are copied from it; 0
  /// where it has none.
  [[nodiscard]] std::uint64_t hash_of(std::size_t section, std::size_t file) const {
    return given_[section] != nullptr ? given_[section]->hash_of(file) : 0;
  }

  /// For the report: the number of files and rows that were kept, and the files that were not.
  [[nodiscard]] std::size_t kept_files() const { return kept_files_; }
  [[nodiscard]] std::int64_t kept_rows() const { return kept_rows_; }
  [[nodiscard]] const NamedFiles& dropped() const { return dropped_.files; }
  [[nodiscard]] const NamedFiles& changed() const { return changed_; }
  [[nodiscard]] const NamedFiles& added() const { return added_; }

 private:
  [[nodiscard]] std::unique_ptr<RowReuse> match(RunContext& run, const OutputSections& sections,
                                                std::size_t section, const FeatureInfo& info,
                                                const std::string& feature_fingerprint,
                                                bool are_routes_kept);
  [[nodiscard]] static bool stays(const RowReuse& old, const RunContext& run,
                                  std::int64_t extensible_at);
  [[nodiscard]] UpdatePreview::Output previewed(RunContext& run, const OutputSections& sections,
                                                std::int64_t extensible_at);
  [[nodiscard]] std::string too_many_dropped(const RunContext& run);
  void note_changes(const RunContext& run, const OutputSections& sections);
  void forget_opened(const RunContext& run);
  void check_rows(std::size_t file, std::size_t section, std::uint64_t hash) const;

  const RowSinkOptions& target_;
  // Outputs that the source asked for, by path, until match(); null for one that does not exist.
  std::map<std::string, std::unique_ptr<RowReuse>> opened_;
  bool is_there_ = false, may_change_ = true;
  std::vector<std::unique_ptr<RowReuse>> matched_;      // by section, or null, until keep()
  std::vector<std::unique_ptr<const RowReuse>> given_;  // outputs whose rows are copied, or null
  std::map<std::size_t, std::int64_t> rows_;            // where each file's rows begin there
  std::map<std::size_t, std::uint64_t> hashes_;         // of these rows, where known
  DroppedRows dropped_;
  NamedFiles changed_, added_;
  std::string refusal_;  // why the update would be refused
  std::size_t kept_files_ = 0;
  std::int64_t kept_rows_ = 0;
};

}  // namespace melflow
