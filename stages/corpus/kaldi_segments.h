// Reads a Kaldi `segments` file as a table, together with the files beside it: wav.scp, which is
// required, and utt2spk and text where they exist.
//
// Columns: path (from wav.scp), start, end, utterance, recording; speaker and text of the others.
// https://kaldi-asr.org/doc/data_prep.html
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"

namespace melflow {

class KaldiSegments final : public TableReader {
 public:
  /// Whether the path is that of a segments file: its name is `segments`.
  static bool is_one(std::string_view path);
  /// Throws RunError when a file cannot be read or has an id twice, or where one of the `required`
  /// columns is not among those above.
  KaldiSegments(const std::string& path, const std::vector<std::string>& required);

  /// Reads a row, as TableReader::next() does. A recording that wav.scp lacks, or for which it has
  /// a command or nothing, is a BadLine whose path is the recording's name. Throws RunError for an
  /// utterance that occurred before.
  bool next() override;
  [[nodiscard]] const std::vector<std::string>& columns() const override { return columns_; }
  [[nodiscard]] int column(std::string_view name) const override;
  [[nodiscard]] const std::string& cell(int column) const override {
    return row_[static_cast<std::size_t>(column)];
  }
  using TableReader::cell;
  [[nodiscard]] int line() const override { return lines_.number(); }
  /// Remarks on utterances that utt2spk or text lacks.
  [[nodiscard]] std::vector<std::string> remarks(const std::vector<int>& used) const override;

 private:
  using Map = std::unordered_map<std::string, std::string>;
  // The ids at the beginning of a file's lines, by which other files refer to them. add() throws
  // RunError for one that comes twice.
  class Ids {
   public:
    void add(const std::string& id, const std::string& path, int line);

   private:
    std::unordered_map<std::string, int> lines_;
  };
  // A file beside segments, with a text for each utterance.
  struct Other {
    std::string path;
    Map texts;
    MissingCells missing;
  };

  void read_scp(const std::string& scp);

  TextLines lines_;
  std::vector<std::string> columns_, row_;
  Map paths_, unusable_;       // by recording: its path, or why there is none
  std::vector<Other> others_;  // for the columns behind the first five
  Ids ids_;                    // of the utterances
  std::size_t utterances_ = 0;
};

}  // namespace melflow
