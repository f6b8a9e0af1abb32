// Reads a data folder of Kaldi as a table: wav.scp, segments where it is there, and for every
// utterance the other files that are.
//
// Columns: path (from wav.scp), start, end, utterance, recording; speaker (of utt2spk, or spk2utt),
// text, language (utt2lang) and recording_duration (reco2dur) where these files exist. Without
// segments every recording is an utterance of its name, and start and end are "".
// https://kaldi-asr.org/doc/data_prep.html
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"

namespace melflow {

/// Returns the file that a command of a wav.scp reads, if it only decodes the file or writes it
/// out: `flac -dc FILE |`, `sph2pipe -f wav FILE |`, `cat FILE |`; nullopt for any other.
std::optional<std::string> file_of_command(std::string_view command);

class KaldiFolder final : public TableReader {
 public:
  /// Whether the path is that of a data folder, that is of one with a wav.scp, or of its `segments`
  /// or wav.scp.
  static bool is_one(const std::string& path);
  /// The files that a data folder may have, whether they are there or not.
  static std::vector<std::string> files_of(const std::string& path);
  /// What becomes of any other command: its recording fails, or the column path has the command,
  /// with the '|' at its end.
  enum class OtherCommands { fail, keep };
  /// `path`: the folder, its segments, or its wav.scp, which is then read without segments. Throws
  /// RunError when a file cannot be read or has an id twice, or where one of the `required` columns
  /// is not among those above.
  KaldiFolder(const std::string& path, const std::vector<std::string>& required,
              OtherCommands commands = OtherCommands::fail);

  /// Reads a row, as TableReader::next() does. A recording that wav.scp lacks, or for which it has
  /// a command that may not be kept, a place in an archive or nothing, is a BadLine whose path is
  /// the recording's name. Throws RunError for an utterance that occurred before.
  bool next() override;
  [[nodiscard]] const std::vector<std::string>& columns() const override { return columns_; }
  [[nodiscard]] int column(std::string_view name) const override;
  [[nodiscard]] const std::string& cell(int column) const override {
    return row_[static_cast<std::size_t>(column)];
  }
  using TableReader::cell;
  [[nodiscard]] Place place(int column) const override;
  [[nodiscard]] std::string_view id() const override { return row_[kUtterance]; }
  /// By reco2dur or, of a recording that is an utterance, utt2dur.
  [[nodiscard]] DeclaredAudio declared(bool) const override;
  [[nodiscard]] bool has_fixed_columns() const override { return true; }
  /// Remarks on utterances that the other files lack, and on times that are not used.
  [[nodiscard]] std::vector<std::string> remarks(const std::vector<int>& used) const override;

 private:
  using Map = std::unordered_map<std::string, std::string>;
  // The first columns; those behind them come from other files.
  enum Column { kPath, kStart, kEnd, kUtterance, kRecording, kOthers };
  // The ids at the beginning of a file's lines, by which other files refer to them. add() throws
  // RunError for one that comes twice.
  class Ids {
   public:
    void add(const std::string& id, const std::string& path, int line);

   private:
    std::unordered_map<std::string, int> lines_;
  };
  // A file with a text for each utterance, or for each recording.
  struct Other {
    struct Text {
      std::string text;
      int line = 0;
    };
    std::string path;
    std::unordered_map<std::string, Text> texts;
    bool is_of_recording = false;
    MissingCells missing;
    MissingCells unlike;  // lines of a file of lengths that are none
  };

  void read_scp(const std::string& scp, OtherCommands commands);
  [[nodiscard]] static Other read_other(const std::string& path, bool is_by_speaker,
                                        bool is_of_recording);
  [[nodiscard]] const Other::Text* text_of(const Other& other) const;
  [[nodiscard]] std::string of_channel(const std::string& path, const std::string& channel) const;

  std::string scp_;
  bool has_segments_ = false, keeps_commands_ = false;
  std::optional<TextLines> lines_;  // of segments, or of wav.scp
  std::vector<std::string> columns_, row_;
  Map paths_, unusable_;            // by recording: its path, or why there is none
  std::vector<Other> others_;       // for the columns from kOthers on
  std::optional<Other> durations_;  // utt2dur, where recordings are utterances
  Ids ids_;                         // of the utterances
  std::size_t utterances_ = 0;
};

}  // namespace melflow
