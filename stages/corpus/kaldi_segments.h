// Reads a `segments` file of Kaldi as a table, with the files beside it: wav.scp, which has to be
// there, and utt2spk and text where they are.
//
// Columns: path (of wav.scp), start, end, utterance, recording, and speaker and text of the others.
// https://kaldi-asr.org/doc/data_prep.html
#pragma once

#include <fstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "stages/corpus/table_reader.h"

namespace melflow {

class KaldiSegments final : public TableReader {
 public:
  /// Whether the path is that of such a file: its name is `segments`.
  static bool is_one(std::string_view path);
  /// Throws RunError when a file cannot be read, has a line that makes no sense or, in wav.scp, a
  /// command, or where one of the `required` columns is not among those above.
  KaldiSegments(const std::string& path, const std::vector<std::string>& required);

  /// As TableReader::next(); throws RunError also for a recording that wav.scp does not have.
  bool next() override;
  [[nodiscard]] const std::vector<std::string>& columns() const override { return columns_; }
  [[nodiscard]] int column(std::string_view name) const override;
  [[nodiscard]] const std::string& cell(int column) const override {
    return row_[static_cast<std::size_t>(column)];
  }
  using TableReader::cell;
  [[nodiscard]] int line() const override { return line_; }

 private:
  using Map = std::unordered_map<std::string, std::string>;

  std::string path_;
  std::ifstream in_;
  std::vector<std::string> columns_, row_;
  Map paths_;                // by recording
  std::vector<Map> others_;  // by utterance: of the columns behind the first five
  int line_ = 0;
};

}  // namespace melflow
