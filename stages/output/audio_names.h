// Names the sound file of each recording: its own path below a folder, with another ending; a.mp3
// becomes a.wav, or a.mp3.wav where another recording would become a.wav, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "pipeline/options/option_type.h"
#include "pipeline/stage/run_context.h"

namespace melflow {

enum class FolderOf { split, label };
template <>
struct EnumNames<FolderOf> {
  static constexpr std::pair<const char*, FolderOf> values[] = {{"split", FolderOf::split},
                                                                {"label", FolderOf::label}};
};

struct AudioNamesOptions {
  std::string folder;        ///< folder that all files are written below
  std::vector<FolderOf> by;  ///< folders inserted before the recording's own
  std::string ending;        ///< "wav"
};

class AudioNames {
 public:
  /// Names the files of all recordings of a run. Throws RunError where two would have the same
  /// name, or a label cannot be the name of a folder.
  AudioNames(AudioNamesOptions options, const RunContext& run);

  /// Returns why the recording cannot be written, or "".
  [[nodiscard]] std::string problem(std::size_t recording) const;
  /// Returns the path of the recording's file; where `window` is 0 or more, that of the window's
  /// file, which has the number behind its name: "a-00012.wav".
  [[nodiscard]] std::string path(std::size_t recording, std::int64_t window = -1) const;

 private:
  [[nodiscard]] std::string stem(std::size_t recording) const;
  [[nodiscard]] std::string folder_by(FolderOf by, std::size_t recording) const;
  void check_folders() const;
  template <class Found>
  void find_doubles(const Found& found) const;

  AudioNamesOptions options_;
  const RunContext& run_;
  std::unordered_set<std::size_t> keep_ending_;  // recordings
};

}  // namespace melflow
