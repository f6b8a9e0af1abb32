// Finds the rows of an earlier output that are still valid: those of files that are listed again
// and have not changed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/stage/run_context.h"
#include "stages/corpus/earlier_files.h"
#include "stages/items.h"
#include "stages/manifest.h"
#include "stages/output/formats/feature_file.h"
#include "stages/output/rows/row_order.h"

namespace melflow {

/// The number of files, and the paths of the first of them.
struct NamedFiles {
  static constexpr std::size_t kMostNames = 1000;
  void add(const std::string& path) {
    if (count++ < kMostNames) names.push_back(path);
  }
  std::size_t count = 0;
  std::vector<std::string> names;
};

/// The rows that an update drops from an earlier output because their files are gone.
struct DroppedRows {
  NamedFiles files;
  std::size_t of_files = 0;  ///< all files with rows, including the dropped ones
  std::int64_t rows = 0, of_rows = 0;
};

class RowReuse {
 public:
  /// A file of the source, and its rows [row, row + rows) in the earlier output.
  struct Kept {
    std::size_t file = 0;
    std::int64_t row = 0, rows = 0;
    std::uint64_t hash = 0;  ///< of the rows; 0: not known
    AboutFile about;
    const FeatureFile::Remark* remark = nullptr;  ///< null: none; lives as long as the RowReuse
  };

  /// Opens the output at `path`; null where there is none. Throws RunError when it cannot be
  /// updated because it is incomplete, of an earlier format, or has features with another
  /// fingerprint; and as PartFile::recover() does, with `may_change`.
  static std::unique_ptr<RowReuse> open(const std::string& path,
                                        const std::string& feature_fingerprint, bool may_change);

  /// Checks files [first, last) of the source: files that were ok and are unchanged are kept, and
  /// the source gets their stamps. A file is unchanged when path, size and modification time are
  /// the same; for a source that compares contents, when path, size and the hash of its bytes are,
  /// for which it is read. A file whose state the system cannot tell is kept. When the run is being
  /// stopped, the remaining files are neither checked nor kept. In a repair (update.h) files are
  /// not looked at. `are_routes_kept`: also checks files that a route sent elsewhere.
  void match(ManifestSource& source, std::size_t first, std::size_t last, const RunContext& run,
             bool are_routes_kept);
  [[nodiscard]] const std::vector<Kept>& kept() const { return kept_; }
  /// A file of the source that is unchanged and that a route sent to another output.
  struct Routed {
    std::size_t file = 0;
    const FeatureFile::Remark* remark = nullptr;  ///< as in Kept
  };
  /// After match() where routes decide by a file's content.
  [[nodiscard]] const std::vector<Routed>& routed() const { return routed_; }
  /// Returns why the rows of a file that was given to match() have to be computed; for files that
  /// are neither kept nor routed.
  [[nodiscard]] std::string why_computed(std::size_t file) const;
  /// Says how many labels have other numbers now, with an example; "" where none has.
  [[nodiscard]] std::string renumbered_labels(const std::vector<std::string>& now) const;
  /// After match(): says how many of the kept files have a state that the system could not tell,
  /// with an example; "" for none.
  [[nodiscard]] const std::string& unreachable() const { return unreachable_; }
  /// After match(): whether all files that were ok and still exist, at least two, have the same
  /// size and another modification time.
  [[nodiscard]] bool are_all_touched() const { return touched_ > 1 && touched_ == looked_at_; }
  /// After match(): adds to `out` the files with rows and, as dropped, those that are gone: not
  /// given to match() and unknown to `is_listed`, or no longer existing.
  void add_dropped(const std::function<bool(const std::string& path)>& is_listed,
                   DroppedRows& out) const;
  /// Calls `visit` for every file of the output, with the name of its split.
  void visit(const EarlierFiles::Visit& visit) const;
  [[nodiscard]] const std::vector<std::string>& splits() const { return file_->splits(); }

  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(file_->rows()); }
  /// Whether the output has hashes of the files' contents.
  [[nodiscard]] bool has_contents() const;
  [[nodiscard]] const std::string& root() const { return file_->root(); }
  [[nodiscard]] std::vector<CorpusSource> sources() const { return file_->sources(); }
  [[nodiscard]] const std::string& path() const { return file_->path(); }
  [[nodiscard]] const std::optional<ColumnStatistics>& statistics() const {
    return file_->statistics();
  }
  /// The hash of the rows that the output has of a file of the source; 0 where it has none, or does
  /// not know.
  [[nodiscard]] std::uint64_t hash_of(std::size_t file) const {
    const std::int64_t entry = entries_[file - first_];
    return entry < 0 ? 0 : file_->files()[static_cast<std::size_t>(entry)].rows_hash;
  }
  /// index_hash() of the output.
  [[nodiscard]] std::string hash() const { return file_->hash(); }
  /// The name that a kept file of the source has in the output.
  [[nodiscard]] const std::string& name_of(std::size_t file) const {
    return file_->files()[static_cast<std::size_t>(entries_[file - first_])].path;
  }
  /// The backend and instruction set that computed the rows: "cpu avx2".
  [[nodiscard]] std::string computed_by() const;
  /// Whether the output has rows that no longer belong to any file.
  [[nodiscard]] bool has_dead_rows() const;
  /// The byte of the file at which the rows begin, where they are in one piece; -1 otherwise.
  [[nodiscard]] std::int64_t rows_at() const;

  /// Reads rows [row, row + count) of the earlier output, float32 [count, frames, columns]. From
  /// any thread.
  [[nodiscard]] std::vector<float> read(std::int64_t row, std::int64_t count) const;

 private:
  explicit RowReuse(const std::string& path);
  [[nodiscard]] std::vector<std::int64_t> entries_of(const ManifestSource& source,
                                                     std::size_t first, std::size_t last) const;

  // The present state of a listed file that may be the same as its entry; else with a stamp of -1.
  struct Now {
    FileStamp stamp;
    std::uint64_t content = 0;  // where it is required
    int error = 0;              // why they are unknown
    bool is_seen = false, is_hashed = false;
  };
  // The states of all files of the source; a service that the run's other outputs share.
  struct Seen {
    std::vector<Now> of;
  };
  static void look_at(const ManifestSource& source, std::size_t file,
                      const FeatureFile::Entry& entry, Now& now);
  [[nodiscard]] std::vector<Now> look(const ManifestSource& source, std::size_t first,
                                      const std::vector<std::int64_t>& entries,
                                      const RunContext& run) const;

  // The entries of files that were ok, for a repair, except those in `but`.
  [[nodiscard]] std::vector<Now> as_they_were(const std::vector<std::int64_t>& entries,
                                              const std::vector<std::size_t>& but) const;

  std::unique_ptr<const FeatureFile> file_;
  std::vector<Kept> kept_;
  std::vector<Routed> routed_;
  std::map<std::int64_t, const FeatureFile::Remark*> elsewhere_;  // entries that it sent
  std::size_t first_ = 0;                                         // the first file given to match()
  std::vector<std::int64_t> entries_;  // the entry of each of these files, -1 for none
  std::string unreachable_;
  std::size_t looked_at_ = 0, touched_ = 0;
  enum class Found : std::uint8_t {
    no,
    yes,
    gone,
    with_another_size,
    with_another_time,
    with_other_content,
    without_hash
  };
  std::vector<Found> found_;  // what match() found for each entry
};

}  // namespace melflow
