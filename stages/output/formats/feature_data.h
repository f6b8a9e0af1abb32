// The contents of a feature file, for any format. The readers of the formats (h5_reader,
// npy_reader, kaldi_reader) fill it; other code gets it from FeatureFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/base/problem.h"
#include "stages/manifest.h"
#include "stages/output/rows/row_statistics.h"

namespace melflow {

struct FeatureData {
  static constexpr std::int64_t kFormat = 2;  ///< the format that is written and read
  enum class Status : std::int8_t { ok, skipped, failed, not_run };
  /// The names of the statuses; outputs store the number.
  static constexpr const char* kStatusNames[] = {"ok", "skipped", "failed", "not_run"};
  struct Entry {
    std::string path;
    std::int64_t offset = 0, count = 0;  ///< rows
    std::int32_t label = -1;
    std::int8_t split = -1;
    std::int32_t sample_rate = 0;  ///< of the file itself [Hz]
    double duration = 0;           ///< [s]
    double start = 0, end = 0;     ///< of an utterance in its recording, as it was listed
    Status status = Status::ok;
    FileStamp stamp;                   ///< of the file when it was read
    std::uint64_t content = 0;         ///< hash of its bytes; 0: not computed
    std::uint64_t rows_hash = 0;       ///< of its rows (row_hash.h); 0: not known
    std::string results;               ///< AboutFile::results
    std::vector<float> targets;        ///< one per name in FeatureData::targets; NaN for none
    std::vector<std::int32_t> labels;  ///< where files may have several; `label` is -1 then
    std::vector<std::string> texts;    ///< as many as FeatureData::columns; "" for none
  };
  struct Remark {
    std::int64_t file = 0;
    std::string path;
    Status status = Status::ok;
    std::string stage, reason;
  };

  std::optional<std::uint64_t> rows_at;  ///< first byte of the rows, where they are in one piece
  std::vector<std::uint64_t> shape;  ///< of the rows: [rows, bands] or [rows, frames, bands]; of
                                     ///< samples [rows] or [rows, samples]
  std::string dtype, unit, root;
  std::vector<double> band_hz;
  std::vector<Entry> files;
  std::vector<std::string> labels, splits, targets, columns;  ///< names
  bool has_label_sets = false;                                ///< files may have several labels
  std::vector<Remark> remarks;
  std::vector<std::string> warnings;  ///< warnings about the run as a whole
  std::optional<ColumnStatistics> statistics;
  /// The root attributes that are numbers or flags, by their names.
  std::map<std::string, std::int64_t> integers;
  std::map<std::string, std::string> texts;  ///< the root attributes that are texts or JSON

  [[nodiscard]] std::uint64_t rows() const { return shape.front(); }
  /// Whether rows are samples, each of which counts as a frame of one band.
  [[nodiscard]] bool has_samples() const;
  [[nodiscard]] std::uint64_t frames_per_row() const {
    return shape.size() == (has_samples() ? 2 : 3) ? shape[1] : 1;
  }
  [[nodiscard]] std::uint64_t bands() const { return has_samples() ? 1 : shape.back(); }
  [[nodiscard]] std::uint64_t values_per_row() const { return frames_per_row() * bands(); }
  [[nodiscard]] std::int64_t format() const { return integer("format").value_or(0); }
  /// The name of the dataset of rows.
  [[nodiscard]] std::string rows_name() const { return text("rows"); }
  [[nodiscard]] std::optional<std::int64_t> integer(const std::string& name) const {
    const auto it = integers.find(name);
    return it == integers.end() ? std::nullopt : std::optional(it->second);
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    const auto it = texts.find(name);
    return it == texts.end() ? "" : it->second;
  }
  /// The text of a file by which GroupStatistics::by groups it; "" for none.
  [[nodiscard]] std::string text_of(const Entry& entry, const std::string& by) const;
};

/// The positions of the rows in their file, little-endian.
struct RowPlaces {
  struct Chunk {
    std::uint64_t at = 0, bytes = 0;
    std::uint32_t filter_mask = 0;  ///< as in ChunkCodec::Packed
  };
  std::uint64_t at = 0;          ///< of the first row, where they are in one piece
  std::uint64_t chunk_rows = 0;  ///< 0: in one piece
  bool is_shuffled = false, is_deflated = false;
  std::vector<Chunk> chunks;  ///< in the order of their rows
};

/// Thrown if rows are stored in a way that RowPlaces cannot describe.
struct RowsApart : RunError {
  using RunError::RunError;
};

/// Reads the rows of an open feature file.
class FeatureRows {
 public:
  FeatureRows() = default;
  FeatureRows(const FeatureRows&) = delete;
  FeatureRows& operator=(const FeatureRows&) = delete;
  virtual ~FeatureRows() = default;
  /// Reads rows [offset, offset + count), which must exist, [count, frames_per_row, bands] in their
  /// stored type, to `to`.
  virtual void read(std::uint64_t offset, std::uint64_t count, std::byte* to) const = 0;
  /// Throws RunError, naming them, where some of the rows are not in the file, and RowsApart.
  [[nodiscard]] virtual RowPlaces places() const = 0;
};

struct FeatureContents {
  FeatureData data;
  std::unique_ptr<const FeatureRows> rows;
};

/// Throws RunError when the file has a format that this program does not know.
void check_format(const std::string& path, const FeatureData& data);
/// Throws RunError for a shape with more or fewer axes than such rows have.
void check_axes(const FeatureData& data);
/// Checks what all readers rely on: names from which files and datasets are named are such as the
/// writer allows (split_name.h), and numbers agree with each other: rows have values, each row
/// belongs to at most one file, every list has the right length. Throws RunError naming what is
/// wrong.
void check_contents(const FeatureData& data);
/// The product of `factors`. Throws RunError, naming `what`, when it does not fit 64 bits.
std::uint64_t checked_product(const std::vector<std::uint64_t>& factors, const std::string& what);

}  // namespace melflow
