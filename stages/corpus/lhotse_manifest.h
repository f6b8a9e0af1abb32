// Reads a manifest of Lhotse, a JSON object per line, as a table: recordings, cuts, or supervisions
// with the recordings in the file beside them (train_supervisions.jsonl.gz,
// train_recordings.jsonl.gz).
//
// Columns: path, start, duration, utterance (the id), recording, channel, and of the supervisions
// text, speaker, language and gender: of several in a cut the texts behind each other, and the
// other values that differ with ", " between them. start and duration are "" for a whole recording.
// https://lhotse.readthedocs.io/en/latest/corpus.html
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"

namespace melflow {

class LhotseManifest final : public TableReader {
 public:
  /// Whether the first object of a file of JSON lines is one of Lhotse's.
  static bool is_one(const std::string& path);
  /// Throws RunError when a file cannot be read, or where one of the `required` columns is not
  /// among those above.
  LhotseManifest(const std::string& path, const std::vector<std::string>& required);

  /// Reads a row, as TableReader::next() does. What has no single file with all of its channels,
  /// such as a mixed cut, is a BadLine whose path is its id.
  bool next() override;
  [[nodiscard]] const std::vector<std::string>& columns() const override { return columns_; }
  [[nodiscard]] int column(std::string_view name) const override;
  [[nodiscard]] const std::string& cell(int column) const override {
    return row_[static_cast<std::size_t>(column)];
  }
  using TableReader::cell;
  [[nodiscard]] Place place(int) const override { return {lines_.path(), lines_.number()}; }
  [[nodiscard]] std::string_view id() const override { return row_[kUtterance]; }
  [[nodiscard]] DeclaredAudio declared(bool) const override { return declared_; }
  [[nodiscard]] bool has_fixed_columns() const override { return true; }
  /// Remarks on times that are not used.
  [[nodiscard]] std::vector<std::string> remarks(const std::vector<int>& used) const override;

 private:
  using Json = nlohmann::json;
  enum Column {
    kPath,
    kStart,
    kDuration,
    kUtterance,
    kRecording,
    kChannel,
    kText,
    kSpeaker,
    kLanguage,
    kGender
  };
  // A recording: where it is, or why it cannot be read.
  struct Recording {
    std::string path, problem;
    std::vector<int> channels;  // ascending
    DeclaredAudio declared;
  };

  static Recording recording_of(const Json& json);
  void read_recordings(const std::string& supervisions);
  std::string take(const Json& object);
  std::string take_part(const Json& part, const Recording& of);
  void take_supervisions(const Json& list);

  TextLines lines_;
  std::vector<std::string> columns_, row_;
  std::unordered_map<std::string, Recording> recordings_;  // of supervisions, by id
  DeclaredAudio declared_;                                 // of the row's recording
  bool has_parts_ = false;                                 // whether a row has a start or duration
};

}  // namespace melflow
