// A sound file that is written: mono, WAV or FLAC, by libsndfile. It has its name only when it is
// complete (stages/files/part_file.h).
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sndfile.h>

#include "pipeline/base/result.h"
#include "stages/files/part_file.h"
#include "stages/items.h"

namespace melflow {

enum class SoundFormat { wav, flac };
enum class StoredSample { int16, int24, float32 };

/// What is written.
struct SoundEncoding {
  SoundFormat format = SoundFormat::wav;
  StoredSample type = StoredSample::int16;  ///< FLAC: an integer
  /// The most bytes of samples in a WAV file, whose sizes have 32 bits.
  std::uint64_t most_bytes = 0xFFFF0000;

  /// "" or why there is no such file of that sample rate.
  [[nodiscard]] std::string refused(int sample_rate) const;
  [[nodiscard]] const char* ending() const { return format == SoundFormat::wav ? "wav" : "flac"; }
};

class SoundWriter {
 public:
  /// Begins the file `target`; `stage` stands before ".path" in messages. Throws RunError as
  /// PartFile does. The kind is not refused at that rate.
  SoundWriter(const std::string& target, const std::string& stage, Existing existing,
              const SoundEncoding& kind, int sample_rate);
  SoundWriter(const SoundWriter&) = delete;
  SoundWriter& operator=(const SoundWriter&) = delete;
  /// Removes the file, unless it has its name.
  ~SoundWriter();

  /// Adds samples. Floats become the nearest integers, those beyond full scale the outermost ones.
  /// An error where the file cannot hold so many; throws RunError where they cannot be written.
  std::optional<ItemError> add(const Samples& samples);
  /// Adds so many zeros.
  std::optional<ItemError> add_silence(std::int64_t count);
  /// Completes the file and gives it its name, with `sync` on disk. Throws RunError.
  void publish(bool sync);

  /// Samples so far that were beyond full scale.
  [[nodiscard]] std::int64_t clipped() const { return clipped_; }

 private:
  static SF_VIRTUAL_IO calls();
  void write_at_place(const void* data, std::uint64_t bytes);
  void check();
  template <class Stored>
  void put_as(const Samples& samples, int bits);
  template <class Stored>
  void put(const std::vector<Stored>& stored);

  PartFile file_;
  SoundEncoding kind_;
  // Where the file says until it is complete that it is not.
  char head_[PartFile::kMark.size()] = {};
  std::uint64_t at_ = 0, size_ = 0, sample_bytes_ = 0;
  std::int64_t clipped_ = 0;
  std::exception_ptr error_;  // of a call by libsndfile
  struct Close {
    void operator()(SNDFILE* f) const { sf_close(f); }
  };
  std::unique_ptr<SNDFILE, Close> sound_;
};

}  // namespace melflow
