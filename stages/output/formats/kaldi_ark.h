// Kaldi's archives of float32, binary, and the tables beside them:
//
//   feats.ark   for each matrix "KEY \0BFM \4<rows>\4<columns>" and its values, for each vector
//               "KEY \0BFV \4<values>" (Kaldi's kaldi-matrix.cc); numbers are int32, little-endian
//               compressed "KEY \0B" and a matrix of kaldi_matrix
//   feats.scp   "KEY feats.ark:OFFSET", the offset that of "\0B"; sorted by key, as all tables are
//   utt2spk, spk2utt, text, utt2num_frames, utt2label
//   cmvn.ark    for each speaker a matrix of doubles, "SPEAKER \0BDM ", 2 x (columns + 1): the sums
//               of its rows and their number, the sums of their squares and 0; cmvn.scp has them
//
// A recording, or each of its results, is a matrix, of samples a vector, and where rows are windows
// of several frames each of these is a matrix, KEY-000000. The index of all recordings is that of
// npy_layout.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stages/output/formats/feature_data.h"
#include "stages/output/formats/framed_rows.h"
#include "stages/output/formats/npy_layout.h"
#include "stages/output/formats/row_part_file.h"

namespace melflow {

constexpr const char* kArkEnding = ".ark";
constexpr const char *kCmvnArk = "cmvn.ark", *kCmvnScp = "cmvn.scp";

/// Returns the words of a text with one `blank` between them, '_' to make one word of all. Unicode
/// white space separates words, too.
std::string kaldi_words(std::string_view text, char blank);

/// Which files are written beside the ark, its table and its index, and how matrices are stored.
struct KaldiForm {
  bool speakers = false, texts = false, cmvn = false;
  int compression = 0;  ///< as in kaldi_matrix; 0: none
};

/// A matrix or vector: all rows under a name or, if rows are windows of several frames, one of
/// them.
struct KaldiMatrix {
  const NamedRows* of;
  std::int64_t row, rows;  ///< of the output
};

/// Where matrices and their values are in an ark. `shape`: of the output's rows.
struct KaldiLayout {
  std::span<const std::uint64_t> shape;
  int compression = 0;

  /// In the order of their rows.
  [[nodiscard]] std::vector<KaldiMatrix> matrices(std::span<const NamedRows> named) const;
  [[nodiscard]] std::int64_t height(const KaldiMatrix& m) const {
    return shape.size() < 3 ? m.rows : static_cast<std::int64_t>(shape[1]);
  }
  [[nodiscard]] std::int64_t columns() const {
    return shape.size() < 2 ? 1 : static_cast<std::int64_t>(shape.back());
  }
  [[nodiscard]] std::string key(const KaldiMatrix& m) const;
  /// What is between "KEY " and the values, or the compressed matrix.
  [[nodiscard]] std::string head(const KaldiMatrix& m) const;
  /// The size of the values, or of the compressed matrix [bytes].
  [[nodiscard]] std::uint64_t bytes(const KaldiMatrix& m) const;
};
/// The table of an ark.
std::string scp_path(const std::string& ark);

/// The texts of the tables for each recording, by its number in the run.
struct KaldiNames {
  std::vector<std::string> keys;
  std::optional<std::vector<std::string>> speakers, texts, labels;  ///< where there are such tables
  bool has_frames = false;  ///< whether there is utt2num_frames
};

/// The tables of a data folder: by the table's name, the value of each key.
struct KaldiTables {
  /// Adds a matrix of `height` rows, at `place`, of recording number `file`.
  void add(const std::string& key, const std::string& place, std::int64_t height,
           const KaldiNames& names, std::size_t file);
  /// Makes spk2utt of utt2spk.
  void add_speakers();

  std::string scp;  ///< the name of the table of matrices
  std::map<std::string, std::map<std::string, std::string>> of = {};
};
/// Writes a table, "KEY VALUE" in each line, and reads it back. Throws RunError.
void write_table(const PartFile& file, const std::map<std::string, std::string>& lines);

/// The sums of each speaker's rows, as cmvn.ark has them. Names that become the same word
/// (kaldi_words) are one speaker.
std::map<std::string, std::vector<double>> speaker_sums(const ColumnStatistics& statistics);
/// Writes cmvn.ark and reads it back; returns its table. Throws RunError.
std::map<std::string, std::string> write_cmvn(
    const PartFile& file, const std::map<std::string, std::vector<double>>& sums);

class KaldiFile final : public RowPartFile {
 public:
  /// The paths of all files, the ark first. `target` ends in ".ark".
  static std::vector<std::string> files_of(const std::string& target, const KaldiForm& form);

  /// Throws RunError as PartFile does, for any of the files.
  KaldiFile(const std::string& target, std::size_t values_per_row, const Opening& opening,
            const KaldiForm& form, std::shared_ptr<const KaldiNames> names);

  /// Completes all files; after a stopped run only the index, since a later run goes on with the
  /// rows. With compression, `hashes`, of all files of the run, are replaced by those of the values
  /// as they will be read. Throws RunError, also where rows read back are not those written.
  void make_ark(std::span<const std::uint64_t> shape, const OutputIndex& index,
                std::vector<std::uint64_t>& hashes);
  [[nodiscard]] std::vector<PartFile*> parts() override;

 private:
  void compress(const std::vector<KaldiMatrix>& matrices, const KaldiLayout& layout,
                const OutputIndex& index, std::vector<std::uint64_t>& hashes) const;

  int compression_;
  std::shared_ptr<const KaldiNames> names_;
  NpyIndexFiles index_;
  std::vector<std::unique_ptr<PartFile>> files_;  // the tables
};

/// Reads everything but the rows, from the files beside `path`. Throws RunError that names what is
/// wrong.
FeatureContents read_ark(const std::string& path, std::uint64_t file_bytes);

}  // namespace melflow
