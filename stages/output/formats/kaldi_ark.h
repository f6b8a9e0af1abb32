// Kaldi's archives of float32, binary, and the tables beside them:
//
//   feats.ark   for each matrix "KEY \0BFM \4<rows>\4<columns>" and its values, for each vector
//               "KEY \0BFV \4<values>" (Kaldi's kaldi-matrix.cc); numbers are int32, little-endian
//   feats.scp   "KEY feats.ark:OFFSET", the offset that of "\0B"; sorted by key, as all tables are
//   utt2spk, spk2utt, text
//
// A recording is a matrix, of samples a vector, and where rows are windows of several frames each
// of these is a matrix, KEY-000000. The index of all recordings is that of npy_layout.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stages/output/formats/feature_data.h"
#include "stages/output/formats/npy_layout.h"
#include "stages/output/formats/row_part_file.h"

namespace melflow {

constexpr const char* kArkEnding = ".ark";

/// What the tables say of recordings, by their numbers in the run.
struct KaldiNames {
  std::vector<std::string> keys;
  std::optional<std::vector<std::string>> speakers, texts;  ///< where there are such tables
};

class KaldiFile final : public RowPartFile {
 public:
  /// The paths of all files, the ark first. `target` ends in ".ark".
  static std::vector<std::string> files_of(const std::string& target, bool has_speakers,
                                           bool has_texts);

  /// Throws RunError as PartFile does, for any of the files.
  KaldiFile(const std::string& target, std::size_t values_per_row, const Opening& opening,
            std::shared_ptr<const KaldiNames> names);

  /// Completes all files; of a run that was stopped only the index, since a later one goes on with
  /// the rows. Throws RunError, also where rows read back are not those written.
  void make_ark(std::span<const std::uint64_t> shape, const OutputIndex& index);
  [[nodiscard]] std::vector<PartFile*> parts() override;

 private:
  std::shared_ptr<const KaldiNames> names_;
  std::vector<std::unique_ptr<PartFile>> files_;  // all but the ark
};

/// Reads everything but the rows, from the files beside `path`. Throws RunError that names what is
/// wrong.
FeatureContents read_ark(const std::string& path, std::uint64_t file_bytes);

}  // namespace melflow
