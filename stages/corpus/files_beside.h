// Texts in a file beside each recording, as in shards of WebDataset: the rule ".txt" is what is in
// a.txt of a.wav, ".json:speaker" a value of the object in a.json.
#pragma once

#include <string>
#include <string_view>

#include "stages/audio/reading/file_reader.h"
#include "stages/containers/container.h"

namespace melflow {

class FilesBeside {
 public:
  FilesBeside();
  /// The problem with a rule, or "".
  [[nodiscard]] static std::string problem(std::string_view text);

  /// Returns the text for the recording at `path`, "" where there is no such file or value. The
  /// file is called like the recording up to its last dot, or up to the first. Throws BadLine where
  /// it cannot be read, or is no text.
  [[nodiscard]] std::string text(const std::string& path, std::string_view rule);

 private:
  // The bytes of a file; "" where there is none.
  const std::string& read(const std::string& path);

  FileReader reader_;
  ContainedItems contained_;
  BufferPool pool_;
  std::string path_, bytes_;  // of the last file
};

}  // namespace melflow
