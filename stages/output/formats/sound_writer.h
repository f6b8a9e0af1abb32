// A sound file being written: mono, WAV or FLAC, by libsndfile. It gets its name only when it is
// complete (stages/files/part_file.h).
//
// Threads: one at a time. Errors: RunError that names the file.
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

/// How samples are written.
struct SoundEncoding {
  SoundFormat format = SoundFormat::wav;
  StoredSample type = StoredSample::int16;  ///< FLAC: an integer
  /// The most bytes of samples in a WAV file, whose sizes have 32 bits.
  std::uint64_t most_bytes = 0xFFFF0000;

  /// Returns why there is no such file of that sample rate, or "".
  [[nodiscard]] std::string refused(int sample_rate) const;
  [[nodiscard]] const char* ending() const { return format == SoundFormat::wav ? "wav" : "flac"; }
};

class SoundWriter {
 public:
  /// Begins the file `target`; messages have `stage` before ".path". Throws RunError as PartFile
  /// does. `kind` must not be refused() at that rate.
  SoundWriter(const std::string& target, const std::string& stage, Existing existing,
              const SoundEncoding& kind, int sample_rate);
  SoundWriter(const SoundWriter&) = delete;
  SoundWriter& operator=(const SoundWriter&) = delete;
  /// Removes the file, unless it has got its name.
  ~SoundWriter();

  /// Adds samples. Floats become the nearest integers, those beyond full scale the outermost ones.
  /// Returns an error where the file cannot hold so many; throws RunError where writing fails.
  std::optional<ItemError> add(const Samples& samples);
  /// Adds so many zeros.
  std::optional<ItemError> add_silence(std::int64_t count);
  /// Completes the file and gives it its name; with `sync` it is then on disk. Throws RunError.
  void publish(bool sync);

  /// The number of samples so far that were beyond full scale.
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
  // The file's first bytes; until it is complete, kMark is in their place.
  char head_[PartFile::kMark.size()] = {};
  std::uint64_t at_ = 0, size_ = 0, sample_bytes_ = 0;
  std::int64_t clipped_ = 0;
  std::exception_ptr error_;  // thrown in a call by libsndfile
  struct Close {
    void operator()(SNDFILE* f) const { sf_close(f); }
  };
  std::unique_ptr<SNDFILE, Close> sound_;
};

}  // namespace melflow
