// Reads the files that hdf5_write, npy_write and kaldi_write make; docs/output-format.md and
// docs/corpora.md describe them.
//
// Threads: calls that read rows of HDF5 use the library, and while a run writes they are made under
// hdf5_mutex(); what was read by the constructor may be asked for from any. Errors: RunError that
// names the file, and what in it is damaged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/base/number_type.h"
#include "stages/manifest.h"
#include "stages/output/formats/feature_data.h"

namespace melflow {

class FeatureFile {
 public:
  using Status = FeatureData::Status;
  using Entry = FeatureData::Entry;
  using Remark = FeatureData::Remark;

  /// Opens the file and reads everything but the rows. Throws RunError that names the problem and,
  /// for an incomplete file, what to do.
  explicit FeatureFile(std::string path);

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Everything but the rows.
  [[nodiscard]] const FeatureData& data() const { return contents_.data; }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }
  [[nodiscard]] bool complete() const { return integer("complete").value_or(0) == 1; }
  /// The number of the output format.
  [[nodiscard]] std::int64_t format() const { return data().format(); }
  /// The name of the rows: "mel", "mfcc", "waveform" and others.
  [[nodiscard]] std::string rows_name() const { return data().rows_name(); }
  /// [rows, bands] or [rows, frames, bands]; of samples [rows] or [rows, samples].
  [[nodiscard]] const std::vector<std::uint64_t>& shape() const { return data().shape; }
  [[nodiscard]] bool has_samples() const { return data().has_samples(); }
  [[nodiscard]] std::uint64_t rows() const { return data().rows(); }
  [[nodiscard]] std::uint64_t frames_per_row() const { return data().frames_per_row(); }
  [[nodiscard]] std::uint64_t bands() const { return data().bands(); }
  /// The byte at which the rows begin, where they are in one piece.
  [[nodiscard]] std::optional<std::uint64_t> rows_at() const { return data().rows_at; }
  [[nodiscard]] const std::string& dtype() const { return data().dtype; }
  [[nodiscard]] const std::string& unit() const { return data().unit; }
  [[nodiscard]] const std::vector<double>& band_hz() const { return data().band_hz; }
  [[nodiscard]] const std::string& root() const { return data().root; }
  /// The sources, where there were several. Throws RunError where they cannot be read.
  [[nodiscard]] std::vector<CorpusSource> sources() const;
  [[nodiscard]] const std::vector<Entry>& files() const { return data().files; }
  [[nodiscard]] const std::vector<std::string>& labels() const { return data().labels; }
  [[nodiscard]] bool has_label_sets() const { return data().has_label_sets; }
  [[nodiscard]] const std::vector<std::string>& splits() const { return data().splits; }
  [[nodiscard]] const std::vector<std::string>& targets() const { return data().targets; }
  /// Names of the texts of every file.
  [[nodiscard]] const std::vector<std::string>& columns() const { return data().columns; }
  [[nodiscard]] const std::optional<ColumnStatistics>& statistics() const {
    return data().statistics;
  }
  /// scaling_step() of the statistics, which must be there, for the rows of a file.
  [[nodiscard]] std::shared_ptr<const FinishStep> scaling_step(const Entry& entry) const;
  [[nodiscard]] const std::vector<Remark>& remarks() const { return data().remarks; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return data().warnings; }

  /// A root attribute (root_attributes.h) by its name; nothing or "" where the file has none.
  [[nodiscard]] std::optional<std::int64_t> integer(const std::string& name) const {
    return data().integer(name);
  }
  [[nodiscard]] std::string text(const std::string& name) const { return data().text(name); }

  /// The type of the stored values. Throws RunError for one that melflow does not write.
  [[nodiscard]] NumberType type() const;
  /// Whether rows are integers that a node made; int16 of samples are not.
  [[nodiscard]] bool has_integers() const { return is_integer(type()) && !has_samples(); }
  /// Reads rows [offset, offset + count) as they are stored, [count, frames_per_row, bands]. Throws
  /// RunError for rows that do not exist.
  [[nodiscard]] std::vector<std::byte> read_stored(std::uint64_t offset, std::uint64_t count) const;
  /// The same as numbers, float or double: floats exactly, samples as shares of full scale,
  /// integers as far as `Number` has bits for them.
  template <class Number = float>
  [[nodiscard]] std::vector<Number> read_rows(std::uint64_t offset, std::uint64_t count) const;
  /// The positions of the stored values. Throws RunError where some of them are not in the file.
  [[nodiscard]] RowPlaces places() const;
  /// Returns what makes the rows and index unfit for use, as a message: the file is not complete,
  /// or the index has no hash or differs from what was written; "" for nothing.
  [[nodiscard]] std::string flaw() const;

  /// index_hash() as the file has it; "" where it has none.
  [[nodiscard]] std::string hash() const;
  /// False where the file's index or attributes differ from what was written, or nothing tells.
  [[nodiscard]] bool is_index_as_written() const;

 private:
  std::string path_;
  std::uint64_t file_bytes_ = 0;
  FeatureContents contents_;
};

const char* to_text(FeatureFile::Status status);

}  // namespace melflow
