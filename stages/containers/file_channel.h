// A channel of a sound file as a recording of its own: calls/1#channel=2.wav is the second channel
// of calls/1.wav, unless there is a file of that name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "stages/containers/container.h"

namespace melflow {

struct FileChannel {
  static constexpr int kMost = 1024;  ///< of a file, the limit of libsndfile
  std::string file;                   ///< path
  int number = 0;                     ///< from 1
};

/// The path of a channel of a file.
std::string channel_path(std::string_view file, int number);
/// What such a path names, by its form alone; without a value for any other path.
std::optional<FileChannel> channel_of(std::string_view path);
/// A path without the channel that it may name.
std::string without_channel(std::string_view path);

/// The recording of a channel of a file that is in no archive.
ContainedItem channel_item(const FileChannel& channel);

}  // namespace melflow
