// Texts in a file for each recording, as in shards of WebDataset: the rule ".txt" gives a.wav what
// is in a.txt, ".json:speaker" a value of the object in a.json, "txt/{parent_dir}/{name}.txt" what
// is in txt/p225/a.txt of wav/p225/a.wav.
#pragma once

#include <string>
#include <string_view>

#include "stages/audio/reading/file_reader.h"
#include "stages/containers/container.h"

namespace melflow {

class FilesBeside {
 public:
  /// `root`: to which templates are relative.
  explicit FilesBeside(std::string root);
  /// The problem with a rule, or "".
  [[nodiscard]] static std::string problem(std::string_view text);

  /// The path that a template gives for the recording `below`, relative to the root unless it
  /// begins with '/'.
  [[nodiscard]] static std::string place(std::string_view rule, std::string_view below);

  /// Returns the text for the recording at `path`, `below` relative to the root; "" where there is
  /// no such file or value. A file beside it has the recording's name up to the last dot, or up to
  /// the first. Throws BadLine where it cannot be read, or is no text.
  [[nodiscard]] std::string text(const std::string& path, std::string_view below,
                                 std::string_view rule);

 private:
  // The bytes of a file; "" where there is none.
  const std::string& read(const std::string& path);

  std::string root_;
  FileReader reader_;
  ContainedItems contained_;
  BufferPool pool_;
  std::string path_, bytes_;  // of the last file
};

}  // namespace melflow
