// The plan of an output: an ordered list of ranges of its files, each with the source of their
// rows. A planner (output_planner.h) makes it before the run; RowSink carries it out, and a dry run
// returns it (RunTask::plans).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "stages/output/formats/feature_file.h"
#include "stages/output/formats/row_part_file.h"
#include "stages/output/output_sections.h"
#include "stages/output/rows/row_order.h"
#include "stages/output/rows/row_statistics.h"

namespace melflow {

struct PlannedRange;

/// An existing file of rows, from which an output takes some: EarlierRows (earlier_rows.h) for an
/// output of melflow, whose rows are compared with their hashes as they are copied.
class RowGiver {
 public:
  using Entry = FeatureFile::Entry;
  virtual ~RowGiver() = default;
  RowGiver() = default;
  RowGiver(const RowGiver&) = delete;
  RowGiver& operator=(const RowGiver&) = delete;

  /// Opens what has to be open only while a range is carried out. Throws RunError where it does not
  /// have what was planned. From any thread; ranges of one giver, one after another.
  virtual void open(const ManifestSource& /*source*/, const PlannedRange& /*range*/) {}
  virtual void close() {}
  /// The file; while it is open.
  [[nodiscard]] virtual const FeatureFile& file() const = 0;
  [[nodiscard]] const Entry& entry(std::size_t i) const { return file().files()[i]; }
  /// The remark on an entry; null for none.
  [[nodiscard]] const FeatureFile::Remark* remark(std::size_t entry) const;
  /// Copies the rows of `entries`, which follow each other in this file, to rows [at, ...) of `to`.
  /// From any thread. Throws RunError, also where they are not what was written.
  virtual void copy(std::span<const std::size_t> entries, RowPartFile& to,
                    std::int64_t at) const = 0;
  /// The sums of all columns over the rows of a range of it, where they are known.
  [[nodiscard]] virtual const ColumnSums* sums() const { return nullptr; }

 protected:
  /// To be called when the file is open.
  void note_remarks();
  void forget_remarks() { remarks_.clear(); }

 private:
  std::unordered_map<std::int64_t, const FeatureFile::Remark*> remarks_;
};

/// Files [first, end) of the corpus whose rows come from the same place.
struct PlannedRange {
  enum class From : std::uint8_t {
    graph,   ///< computed by the run
    giver,   ///< of the giver: copied, or in a section that is extended in place left there
    nowhere  ///< a route sent these files to another output, and would again
  };
  /// The findings about the files: for computed ones, the reason. to_text() has the same order.
  enum class Found : std::uint8_t {
    added,
    unchanged,
    failed_before,
    skipped_before,
    not_run_before,
    damaged,
    gone,
    with_another_size,
    with_another_time,
    with_other_content,
    without_hash
  };

  std::size_t first = 0, end = 0;
  From from = From::graph;
  Found found = Found::added;
  /// The giver whose entries `entry`, `entry` + 1 and so on are these files; null: there is none.
  std::shared_ptr<RowGiver> giver = nullptr;
  std::size_t entry = 0;

  [[nodiscard]] std::size_t entry_of(std::size_t file) const { return entry + (file - first); }
  [[nodiscard]] bool is_kept() const { return from == From::giver; }
};
/// Returns why files are computed: "new", "changed (size)".
const char* to_text(PlannedRange::Found found);

/// The number of files, and the paths of the first of them.
struct NamedFiles {
  static constexpr std::size_t kMostNames = 1000;
  void add(const std::string& path) {
    if (count++ < kMostNames) names.push_back(path);
  }
  std::size_t count = 0;
  std::vector<std::string> names;
};

struct RowPlan {
  /// One file of the output.
  struct Section {
    std::vector<PlannedRange> ranges;  ///< of all its files, in order
    /// The number of rows that stay in place; new ones come after them. Not set where the file is
    /// made anew.
    std::optional<std::int64_t> in_place = std::nullopt;
    std::string hash = {};  ///< index_hash() of the file that is updated; "" where there is none
    /// With RowPlan::is_repair, the warnings of the file: the listing and the run that made them
    /// are not repeated.
    std::vector<std::string> warnings = {};

    /// The range of a file.
    [[nodiscard]] const PlannedRange& of(std::size_t file) const;
    /// Appends one file; joins it with the range before it where it continues that.
    void add(std::size_t file, PlannedRange::From from, PlannedRange::Found found,
             const std::shared_ptr<RowGiver>& giver, std::size_t entry);
  };
  std::string path = {};  ///< of the output
  std::vector<Section> sections = {};
  /// An earlier output exists and keeps its name until this one takes that over; a run that is
  /// stopped leaves it as it was.
  bool is_update = false;
  /// All files come from givers, whose rows are copied on all threads before the graph begins; an
  /// interrupted copy begins again. Otherwise rows are copied at their turn, and the journal tells
  /// how far.
  bool copies_first = false;
  /// Only damaged rows are computed, by the configuration in the output: its warnings are kept
  /// (Section::warnings), and an update does not resume it. Whether the new rows equal the old ones
  /// is not checked.
  bool is_repair = false;
  /// The statistics by which kept rows are normalised already and the others still have to be; not
  /// set: a sink with `normalize` scales all rows by their own.
  std::optional<ColumnStatistics> normalized_by = std::nullopt;
  // For the report and a preview.
  NamedFiles dropped = {}, changed = {}, added = {};
  std::int64_t dropped_rows = 0;
  std::string refusal = {};  ///< why it is not to be carried out; "": it is

  [[nodiscard]] bool is_kept(std::size_t section, std::size_t file) const {
    return sections[section].of(file).is_kept();
  }
  /// Whether an output is there, and new rows come behind those that it has.
  [[nodiscard]] bool is_in_place() const;
};

/// Copies the rows of ready[from], which come from a giver, and of the following parts as long as
/// their rows are adjacent in the giver, too, up to `most` bytes. Returns the next part. From any
/// thread. Throws RunError.
std::size_t copy_planned(const RowPlan& plan, const std::vector<PlacedPart>& ready,
                         std::size_t from, RowPartFile& to, std::uint64_t most);

}  // namespace melflow
