// Every payload that crosses an edge of an audio graph, with units and shapes. All are immutable.
//
//   FileRef -> RawBytes -> Waveform -> (Waveform) -> Windows -> Batch -> MelBatch
//
// A stream is one file. Its samples are counted from 0 at the rate of the payload; blocks
// of a long file follow each other without a gap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/base/memory.h"
#include "pipeline/base/number_type.h"
#include "stages/declared_audio.h"
#include "stages/files/file_state.h"
#include "stages/files/unique_fd.h"

namespace melflow {

class Container;
class StoredAudio;
class UtteranceSteps;

/// Bytes of a file that are one recording: a member of an archive.
struct FilePart {
  std::string file;                       ///< path
  std::uint64_t begin = 0, stored = 0;    ///< [bytes]
  bool is_deflated = false;               ///< then `stored` bytes become FileRef::size
  std::optional<FileState> state = {};    ///< of the file, when its index was read
  std::string problem = {};               ///< why it cannot be read; "" if it can
  std::optional<std::uint32_t> crc = {};  ///< CRC-32 of the recording's bytes
};

/// A file to read, as it was listed.
struct FileRef {
  static constexpr const char* kName = "file";
  std::string path;        ///< as the system opens it
  std::uint64_t size = 0;  ///< [bytes]; 0 also where the system could not tell it
  /// The reason why the file is not to be read, or ""; owned by the source, which outlives items.
  std::string_view problem;
  /// The file's decoded samples, where a store has them: then nothing is read.
  std::shared_ptr<const StoredAudio> stored;
  /// Where the bytes are, if not in a file of their own; else without a value and null.
  std::optional<FilePart> part;
  std::shared_ptr<const Container> container;
  int channel = 0;  ///< of the file, from 1, which alone is the recording; 0: all are
  /// What the entries of the list that are cut out of it say, each once where they follow another.
  std::vector<DeclaredAudio> declared;

  [[nodiscard]] std::size_t bytes() const { return 0; }
  [[nodiscard]] std::size_t rows() const { return 0; }
};

/// A file's bytes, or for a large file the open file to read them from piece by piece; neither
/// where the file's samples are stored.
struct RawBytes {
  static constexpr const char* kName = "bytes";
  std::shared_ptr<const FileRef> file;
  Buffer data;              ///< the whole file; empty for a large one
  UniqueFd fd;              ///< open, for a large file
  std::uint64_t begin = 0;  ///< where the bytes begin in `fd`
  std::size_t window = 0;   ///< [bytes] to read at a time from `fd`
  std::uint64_t size = 0;   ///< [bytes]; 0 where nothing is read

  /// The bytes in memory. For a recording of unknown size at most the size that was assumed: the
  /// rest is in `fd`.
  [[nodiscard]] std::size_t bytes() const {
    return fd && file->container ? std::min(size, file->size) : size;
  }
  [[nodiscard]] std::size_t rows() const { return 0; }
};

enum class SampleType : std::uint8_t { int16, float32 };
constexpr std::size_t size_of(SampleType t) { return t == SampleType::int16 ? 2 : 4; }

/// Mono samples [count] and the owner of their memory, if they have one. int16 counts as
/// value / 32768.
struct Samples {
  std::shared_ptr<const void> owner;
  const std::byte* data = nullptr;
  std::int64_t count = 0;
  SampleType type = SampleType::float32;

  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(count) * size_of(type);
  }
};

/// The facts about a file's audio that an output records.
struct FileAudio {
  int sample_rate = 0;      ///< of the file itself [Hz]
  std::int64_t frames = 0;  ///< decoded so far, at that rate
  std::int64_t total = 0;   ///< frames by the file's header; 0: it does not say
  int channels = 0;         ///< of the file, from which the samples were made; 0: not known
  bool is_mean = false;     ///< whether they are the mean of several, as nobody chose one
};

/// Samples [begin, end) of a stream.
struct Stretch {
  std::int64_t begin = 0, end = 0;
};

/// A block of a stream's samples.
struct Waveform {
  static constexpr const char* kName = "waveform";
  Samples samples;
  int sample_rate = 0;     ///< [Hz]
  std::int64_t start = 0;  ///< position of the first sample in the stream
  bool first = true, last = true;
  bool stored = false;  ///< comes from a store of decoded audio, not from the file
  FileAudio file;
  /// The first frame so far, at the file's own rate, whose time is uncertain: data of unknown
  /// length was lost before it.
  std::int64_t untimed_from = kAllTimed;
  /// The stretches of its samples that a stage has marked (mark_sound), in order. A stretch that
  /// ends with the block continues where the next block has one from its first sample.
  std::vector<Stretch> marked = {};

  static constexpr std::int64_t kAllTimed = std::numeric_limits<std::int64_t>::max();
  [[nodiscard]] bool is_timed() const { return untimed_from == kAllTimed; }

  [[nodiscard]] std::size_t bytes() const { return samples.bytes(); }
  [[nodiscard]] std::size_t rows() const { return 0; }
};

/// Windows of equal length on a stream: row r starts at
/// (r / per_long) * long_hop + (r % per_long) * short_hop. Plain windows have per_long = 1.
struct WindowGrid {
  std::int64_t length = 0;       ///< of a row's window [samples]
  std::int64_t long_length = 0;  ///< = length for plain windows
  std::int64_t long_hop = 1;
  std::int64_t short_hop = 1;
  std::int64_t per_long = 1;

  [[nodiscard]] std::int64_t start(std::int64_t row) const {
    return row / per_long * long_hop + row % per_long * short_hop;
  }
  friend bool operator==(const WindowGrid&, const WindowGrid&) = default;
};

/// A block of a stream, cut into windows, or (without a grid) to be framed as a whole.
struct Windows {
  static constexpr const char* kName = "windows";
  Samples samples;         ///< may begin before `fresh`, with samples left by earlier blocks
  std::int64_t begin = 0;  ///< position of samples[0] in the stream
  int sample_rate = 0;
  std::optional<WindowGrid> grid;
  std::int64_t first_row = 0, row_count = 0;  ///< with a grid: the rows this block completes
  std::int64_t fresh = 0;  ///< without: samples before this position came in earlier blocks
  bool first = true, last = true;
  FileAudio file;

  [[nodiscard]] std::int64_t end() const { return begin + samples.count; }
  [[nodiscard]] std::size_t bytes() const { return samples.bytes(); }
  [[nodiscard]] std::size_t rows() const { return static_cast<std::size_t>(row_count); }
};

/// Blocks of several files; part i belongs to origin i of the item.
struct Batch {
  static constexpr const char* kName = "batch";
  std::vector<std::shared_ptr<const Windows>> parts;

  [[nodiscard]] std::size_t bytes() const {
    std::size_t n = 0;
    for (const auto& p : parts) n += p->bytes();
    return n;
  }
  [[nodiscard]] std::size_t rows() const {
    std::size_t n = 0;
    for (const auto& p : parts) n += p->rows();
    return n;
  }
};

/// The backend and instruction set that compute the rows. With devices they are known only once the
/// devices are open, after the plan and before the first row; until then the instruction set is "",
/// and the backend is "cuda", or "auto" where the CPU may be used instead.
struct ComputedBy {
  std::string backend, instruction_set;
  bool wide_sets_agree = false;  ///< whether AVX2 and AVX-512 give the same bytes
  /// What did the Fourier transform on the CPU, "fftw" or "melflow", where it was not the lanes.
  std::string transform = "";

  /// Returns the instruction sets that give the same bytes as `set`, which may also name the
  /// backend or other sets: "avx2 or avx512" where these agree, else "avx2 with FFTW".
  [[nodiscard]] std::string sets_like(std::string set) const {
    for (const std::string wide : {"avx512", "avx2"})
      if (const std::size_t at = set.find(wide); at != set.npos)
        return set.replace(at, wide.size(),
                           wide_sets_agree ? "avx2 or avx512" : wide + " with FFTW");
    return set;
  }
};

/// The names that rows can have in an output; nothing else in an output may have one of these.
inline constexpr std::string_view kWaveformRows = "waveform", kWindowRows = "windows";
inline constexpr std::string_view kConcatRows = "features";
inline constexpr std::string_view kRowNames[] = {"mel",         "mfcc",      "spectrogram",
                                                 kWaveformRows, kWindowRows, kConcatRows};

/// The columns of one node, in rows that are joined from several nodes.
struct ColumnGroup {
  std::string node;  ///< the node that made the columns
  std::string name, unit;
  int columns = 0;
};

/// The description of all rows of a run, known on the edge (property::kFeatures).
struct FeatureInfo {
  /// The name of the rows in an output, one of kRowNames, from the stage that makes them: "mel",
  /// "spectrogram", "mfcc", "waveform", "features".
  std::string name;
  int frames = 0;             ///< frames in a row; 0: recordings are not cut, a row is a frame
  int columns = 0;            ///< values of a frame
  std::string axis = "band";  ///< what a column is: "band", "bin", "coefficient"; "" for samples,
                              ///< which are frames of one column and have no axis of columns
  std::vector<double> column_hz;  ///< [columns] centre frequencies, NaN for an energy; or empty
  int energy_column = -1;         ///< the column of the log energy, -1 without one
  bool is_log = false;            ///< logarithmic, so that a cepstrum can be computed
  /// float32, in which stages compute and which a reader may ask for in another type; or that of
  /// integers, which stay as they are made.
  NumberType type = NumberType::float32;
  bool is_full_scale = false;  ///< samples for which 1 is full scale, as int16 stores them
  std::string unit;            ///< "dB", "ln power", ...
  std::string preset;          ///< "whisper, with n_mels changed"; "" without one
  int sample_rate = 0, n_fft = 0, hop = 0;
  /// Returns the frames of a recording of so many samples at `sample_rate`; empty where unknown.
  std::function<std::int64_t(std::int64_t)> frames_of;
  std::vector<ColumnGroup> groups;  ///< in the order of the columns; none in rows of one kind
  /// Shared by all descriptions that are derived from this one.
  std::shared_ptr<ComputedBy> computed_by = std::make_shared<ComputedBy>();

  [[nodiscard]] bool is_samples() const { return axis.empty(); }
  [[nodiscard]] bool has_integers() const { return is_integer(type); }
  [[nodiscard]] std::size_t values_per_row() const {
    return static_cast<std::size_t>(frames > 0 ? frames : 1) * static_cast<std::size_t>(columns);
  }
};

/// Rows of one block of one file, [row_count, frames, columns] of `type`. Of integers that is the
/// type of FeatureInfo. Else it is other than float32 only where the values are final and all
/// readers asked for the same other type by require_rows() (stages/row_type.h), which every stage
/// that takes rows calls.
struct MelPart {
  std::shared_ptr<const Buffer> data;
  NumberType type = NumberType::float32;
  std::int64_t first_row = 0;  ///< in the file
  std::int64_t row_count = 0;
  bool last = true;
  FileAudio file;
  /// The steps that remain to be done once all blocks of the file have arrived; null where the
  /// values are final. Until then a frame has `pending_columns` values, and `first_row` and
  /// `row_count` count the rows before these steps, which may change their number.
  std::shared_ptr<const UtteranceSteps> pending;
  int pending_columns = 0;

  /// The values of float32 rows. Throws std::logic_error for rows of another type.
  [[nodiscard]] const float* values() const {
    if (type != NumberType::float32) throw std::logic_error("rows that are not float32");
    return data->as<float>();
  }
  /// Whether this is the file's only block.
  [[nodiscard]] bool is_whole() const { return first_row == 0 && last; }
};

/// Rows of several files; part i belongs to origin i of the item, null where that file failed.
struct MelBatch {
  static constexpr const char* kName = "rows";
  std::vector<std::shared_ptr<const MelPart>> parts;
  std::shared_ptr<const FeatureInfo> info;

  [[nodiscard]] std::size_t rows() const {
    std::size_t n = 0;
    for (const auto& p : parts) n += p ? static_cast<std::size_t>(p->row_count) : 0;
    return n;
  }
  [[nodiscard]] std::size_t bytes() const {
    std::size_t n = 0;
    for (const auto& p : parts)
      if (p)
        n += static_cast<std::size_t>(p->row_count) * size_of(p->type) *
             (p->pending ? static_cast<std::size_t>(p->pending_columns) : info->values_per_row());
    return n;
  }
};

}  // namespace melflow
