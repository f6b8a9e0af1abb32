// Decoders in processes of their own, so that a library that crashes or hangs on a file costs that file and not the run.
//
// In:  SoundInput, as SoundFile has it.
// Out: a SoundDecoder that gives what the library would give here: same samples, same faults, same errors.
//
// A child is the program itself, restarted with a hidden verb (decoder_process.h), since a process with threads cannot fork.
// It serves one recording at a time, and is used again. Requests and replies are packets of a socket; samples come through shared
// memory, kSharedBytes for each child; a file that lies in memory goes there through a second piece as large as the file. A child
// ends when its socket closes, however this process ends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "stages/audio/decoders/sound_decoder.h"

namespace melflow {

/// A child that crashed, hung or could not be started, in words for the file's account.
class DecoderLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A child that was killed since it gave nothing while the run was being stopped: its file is not done.
class DecoderStopped : public DecoderLost {
 public:
  using DecoderLost::DecoderLost;
};

class IsolatedDecoders {
 public:
  /// The memory that a child takes [bytes], beside a copy of a file that lies in memory: what is its own of the program,
  /// kSharedBytes, and what a library takes of sound files as they are. Docs: decision 19 has the measurement.
  static std::size_t child_memory();

  /// `patience`: how long a child may work on one request; `stop`: whether the run is being stopped, may be null.
  IsolatedDecoders(std::chrono::seconds patience, const std::atomic<bool>* stop);
  /// Ends all children. No decoder may be in use.
  ~IsolatedDecoders();
  IsolatedDecoders(const IsolatedDecoders&) = delete;
  IsolatedDecoders& operator=(const IsolatedDecoders&) = delete;

  struct Opened {
    OpenedSound sound;
    bool is_by_ffmpeg = false;
  };
  /// Opens a file in a child that is idle, or a new one. It reads `input` no more than for its bytes; errors of reading are
  /// input.error(). This and the decoder's read() throw DecoderLost, of which one is DecoderStopped. `input` must outlive the
  /// decoder.
  Opened open(SoundInput& input);

 private:
  class Child;
  class Decoder;
  std::unique_ptr<Child> lease();
  void give_back(std::unique_ptr<Child> child);

  const std::chrono::seconds patience_;
  const std::atomic<bool>* const stop_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Child>> idle_;
};

}  // namespace melflow
