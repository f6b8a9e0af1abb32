// What of an earlier output is still right: rows of files that are listed again and have not
// changed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/run_context.h"
#include "stages/corpus/earlier_files.h"
#include "stages/items.h"
#include "stages/manifest.h"
#include "stages/output/formats/feature_file.h"

namespace melflow {

/// What of an earlier output an update leaves out because its files are gone.
struct DroppedRows {
  std::size_t files = 0, of_files = 0;  ///< that have rows
  std::int64_t rows = 0, of_rows = 0;
  std::string example;  ///< a path of them
};

class RowReuse {
 public:
  /// A file of the source, and the rows [row, row + rows) that the earlier output has of it.
  struct Kept {
    std::size_t file = 0;
    std::int64_t row = 0, rows = 0;
    FileAudio audio;
    const FeatureFile::Remark* remark = nullptr;  ///< if there is one; as long as this object lives
  };

  /// Null where there is no such output. Throws RunError where there is one that cannot be gone on
  /// with: it is not complete, of an earlier format, or holds other features than those with
  /// `feature_fingerprint`.
  static std::unique_ptr<RowReuse> open(const std::string& path,
                                        const std::string& feature_fingerprint);

  /// Looks at files [first, last) of the source: those that had been ok and are the same are kept,
  /// and the source gets their stamps. The same is what has the same path, size and time of change,
  /// or for a source that goes by contents the same path, size and hash of its bytes, which are
  /// read for it. A file that cannot be asked, although it may be there, is kept as it was.
  /// Where the run is being stopped the rest is not looked at, and not kept.
  void match(ManifestSource& source, std::size_t first, std::size_t last, const RunContext& run);
  [[nodiscard]] const std::vector<Kept>& kept() const { return kept_; }
  /// Of one of those files that is not kept: why its rows have to be computed.
  [[nodiscard]] std::string why_computed(std::size_t file) const;
  /// After match(): how many of the kept files could not be asked, with an example; "" for none.
  [[nodiscard]] const std::string& unreachable() const { return unreachable_; }
  /// After match(): adds the files with rows, and those that are gone: not among the files that
  /// were looked at, and not among those that `is_listed` knows, or not there any more.
  void add_dropped(const std::function<bool(const std::string& path)>& is_listed,
                   DroppedRows& out) const;
  /// Every file, with the name of its split.
  void visit(const EarlierFiles::Visit& visit) const;
  [[nodiscard]] const std::vector<std::string>& splits() const { return file_->splits(); }

  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(file_->rows()); }
  /// There are hashes of files' contents.
  [[nodiscard]] bool has_contents() const;
  [[nodiscard]] const std::string& root() const { return file_->root(); }
  /// What computed them: "cpu avx2".
  [[nodiscard]] std::string computed_by() const;
  /// There are rows that belong to no file any more.
  [[nodiscard]] bool has_dead_rows() const;
  /// Byte that the rows begin at, if they are in one piece; -1 otherwise.
  [[nodiscard]] std::int64_t rows_at() const;

  /// Rows of the earlier output, float32 [count, frames, columns]; from any thread.
  [[nodiscard]] std::vector<float> read(std::int64_t row, std::int64_t count) const;

 private:
  explicit RowReuse(const std::string& path);
  [[nodiscard]] std::vector<std::int64_t> entries_of(const ManifestSource& source,
                                                     std::size_t first, std::size_t last) const;

  // Of each listed file that may be the same as its entry; else a stamp of -1.
  struct Now {
    FileStamp stamp;
    std::uint64_t content = 0;  // where it is asked for
    int error = 0;              // why neither is there
  };
  [[nodiscard]] Now look_at(const ManifestSource& source, std::size_t file,
                            const FeatureFile::Entry& entry) const;
  [[nodiscard]] std::vector<Now> look(const ManifestSource& source, std::size_t first,
                                      const std::vector<std::int64_t>& entries,
                                      const RunContext& run) const;

  std::unique_ptr<const FeatureFile> file_;
  std::vector<Kept> kept_;
  std::size_t first_ = 0;              // of the files that match() looked at
  std::vector<std::int64_t> entries_;  // of each of them, -1 for none
  std::string unreachable_;
  enum class Found : std::uint8_t { no, yes, gone };
  std::vector<Found> found_;  // each entry among the files, by match()
};

}  // namespace melflow
