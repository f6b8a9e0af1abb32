// The keys of requirements and properties, which stages pass along the edges before a run.
// Requirements go up from the stage that needs something to a stage that can provide it; properties
// come down with the items.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pipeline/base/number_type.h"
#include "pipeline/stage/facts.h"
#include "stages/measures.h"

namespace melflow {

class CudaRun;
class Feed;
class MakesMeters;
enum class UtteranceRule : std::uint8_t;
struct ContentHashes;
struct FeatureInfo;
struct ManifestFields;
class Stage;
struct WindowGrid;

/// The limits of a batch: it is full when it reaches either of them.
struct FullBatch {
  int files = 0;
  std::size_t bytes = 0;  ///< of samples
  friend bool operator==(const FullBatch&, const FullBatch&) = default;
};

namespace requirement {

/// The rate that samples must have [Hz]; a front end requires it, a resampler provides it.
inline constexpr Requirement<double, merge::Equal> kSampleRate{"sample_rate"};
/// The rate [Hz] below which blocks must be shorter in proportion; a resampler requires it.
inline constexpr Requirement<double, merge::Largest> kLowestRate{"lowest_rate"};
/// The number of samples of which a block should hold a multiple, so that windows that do not
/// overlap never span two blocks and need no copying. A preference of `segment` that changes no
/// row; of several values the largest applies.
inline constexpr Requirement<std::int64_t, merge::Largest> kBlockMultiple{"block_multiple"};
/// The size of a recording, as float32, up to which a stage takes it as one block [bytes].
inline constexpr Requirement<std::uint64_t, merge::Largest> kWholeBlock{"whole_block"};
/// The number of samples of a block that the next block's frames need; a front end requires it.
inline constexpr Requirement<std::int64_t, merge::Largest> kContext{"context"};
/// The number types that the readers of rows ask for (row_type.h).
inline constexpr Requirement<std::set<NumberType>, merge::Union> kRowTypes{"row_types"};
/// Makes the meters that decode shows every recording's samples to; `quality` requires it.
inline constexpr Requirement<std::shared_ptr<const MakesMeters>, merge::Equal> kMeter{"meter"};
/// The chain of CUDA nodes that a batch goes to; its node cuda_mel requires it.
inline constexpr Requirement<std::shared_ptr<CudaRun>, merge::First> kCudaRun{"cuda"};

}  // namespace requirement

/// The beginning of the reason why a sink does not get a file that a route sends to another output.
inline constexpr const char* kSentElsewhere = "leaves by output '";

namespace property {

/// The rate of the samples [Hz].
inline constexpr Property<double> kSampleRate{"sample_rate"};
/// The number of samples of every file; not set where files differ or it is unknown.
inline constexpr Property<std::int64_t> kSamplesOfFile{"samples_of_file"};
/// The limits of the batches that arrive.
inline constexpr Property<FullBatch> kFullBatch{"full_batch"};
/// The upstream `repeat` that emits every recording `times` times; where there are several, the
/// innermost.
struct Repeated {
  const Stage* by = nullptr;
  int times = 0;
  friend bool operator==(const Repeated&, const Repeated&) = default;
};
inline constexpr Property<Repeated> kRepeated{"repeated"};
/// Whether Waveform::marked is filled in.
inline constexpr Property<bool> kIsMarked{"is_marked"};
/// How streams are cut into windows, each a row; where it is not set, each frame is a row.
inline constexpr Property<WindowGrid> kWindowGrid{"windows"};
/// The number of samples of a row, and the bound on rows: n samples make at most n * kRowsPerSample
/// + kRowsExtra.
inline constexpr Property<std::int64_t> kWindow{"window"};
inline constexpr Property<double> kRowsPerSample{"rows_per_sample"};
inline constexpr Property<double> kRowsExtra{"rows_extra"};
/// The description of the rows.
inline constexpr Property<std::shared_ptr<const FeatureInfo>> kFeatures{"features"};
/// The stage that changed the number of rows of recordings or windows; not set where rows are the
/// frames.
inline constexpr Property<std::string> kResizedBy{"resized_by"};
/// The source's store of decoded audio, which the first node that can do so fills.
inline constexpr Property<std::shared_ptr<Feed>> kFeed{"feed"};
/// The source's hashes of files' contents, which the first node that can do so fills in.
inline constexpr Property<std::shared_ptr<ContentHashes>> kContents{"contents"};
/// The libraries that determine the samples, with their versions; not set where there are none.
inline constexpr Property<std::string> kLibraries{"libraries"};
/// The fields that the list of files has for every file.
inline constexpr Property<std::shared_ptr<const ManifestFields>> kManifestFields{"manifest_fields"};
/// Whether an item is a recording with utterances that are to be cut out of it.
inline constexpr Property<bool> kHasUtterances{"has_utterances"};
/// How the times of such utterances become samples.
inline constexpr Property<UtteranceRule> kUtteranceRule{"utterance_rule"};
/// Whether Python gives the bytes of some recordings, for which a reader waits.
inline constexpr Property<bool> kIsGiven{"is_given"};
/// Whether every upstream route decides by the content of a file, not by its entry in a list, so
/// that an unchanged file takes the same branch. Not set where there is no route.
inline constexpr Property<bool> kIsRoutedByContent{"is_routed_by_content"};
/// Whose meters fill in FileAudio::measured; otherwise kNotMeasured is the reason, if there is one.
inline constexpr Property<std::shared_ptr<const MakesMeters>> kMeter{"meter"};
inline constexpr Property<std::string> kNotMeasured{"not_measured"};
/// The measures that FileAudio::measured has; not set where there are none.
inline constexpr Property<MeasureSet> kMeasures{"measures"};
/// The chain of CUDA nodes that an item is in.
inline constexpr Property<std::shared_ptr<CudaRun>> kCudaRun{"cuda"};

}  // namespace property

}  // namespace melflow
