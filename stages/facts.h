// The keys of requirements and properties, which stages pass along the edges before a run.
// Requirements go up from the stage that needs something to a stage that can provide it; properties
// come down with the items.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "pipeline/base/number_type.h"
#include "pipeline/stage/facts.h"

namespace melflow {

class CudaRun;
class Feed;
struct ContentHashes;
struct EarlierFiles;
struct FeatureInfo;
struct ManifestFields;
class Stage;
struct WindowGrid;

/// At what a batch is full: either.
struct FullBatch {
  int files = 0;
  std::size_t bytes = 0;  ///< of samples
  friend bool operator==(const FullBatch&, const FullBatch&) = default;
};

/// How lists that several branches require become one: each element once, in the order of the
/// branches.
struct AppendLists {
  template <class List>
  bool operator()(List& mine, const List& other) const {
    for (const auto& one : other)
      if (std::find(mine.begin(), mine.end(), one) == mine.end()) mine.push_back(one);
    return true;
  }
};

namespace requirement {

/// The rate that samples must have [Hz]; a front end requires it, a resampler provides it.
inline constexpr Requirement<double, merge::Equal> kSampleRate{"sample_rate"};
/// The rate [Hz] below which blocks must be shorter in proportion; a resampler requires it.
inline constexpr Requirement<double, merge::Largest> kLowestRate{"lowest_rate"};
/// Samples of which a block should hold a whole number: windows that do not overlap then never lie
/// in two blocks, and nothing is copied to join them. A wish of `segment` that changes no row; of
/// several the largest.
inline constexpr Requirement<std::int64_t, merge::Largest> kBlockMultiple{"block_multiple"};
/// How many samples of a block the frames of the next one need; a front end requires it.
inline constexpr Requirement<std::int64_t, merge::Largest> kContext{"context"};
/// The number types that the readers of rows ask for (row_type.h).
inline constexpr Requirement<std::set<NumberType>, merge::Union> kRowTypes{"row_types"};
/// The chain on devices that a batch goes to; its node cuda_mel requires it.
inline constexpr Requirement<std::shared_ptr<CudaRun>, merge::First> kCudaRun{"cuda"};
/// The files of earlier outputs, for the source of an update; each sink gives those of its own.
inline constexpr Requirement<std::vector<std::shared_ptr<const EarlierFiles>>, AppendLists>
    kEarlierFiles{"earlier_files"};

}  // namespace requirement

/// How the reason begins for which a sink does not get a file that a route sends by another output.
inline constexpr const char* kSentElsewhere = "leaves by output '";

namespace property {

/// The rate of the samples [Hz].
inline constexpr Property<double> kSampleRate{"sample_rate"};
/// How many samples every file has; nothing where they differ, or nobody knows.
inline constexpr Property<std::int64_t> kSamplesOfFile{"samples_of_file"};
/// Of the batches that come.
inline constexpr Property<FullBatch> kFullBatch{"full_batch"};
/// The repeat before that every recording comes from so many times; the innermost, where several
/// are.
struct Repeated {
  const Stage* by = nullptr;
  int times = 0;
  friend bool operator==(const Repeated&, const Repeated&) = default;
};
inline constexpr Property<Repeated> kRepeated{"repeated"};
/// Whether Waveform::marked says something.
inline constexpr Property<bool> kIsMarked{"is_marked"};
/// How streams are cut into windows, each a row; without it each frame is a row.
inline constexpr Property<WindowGrid> kWindowGrid{"windows"};
/// The number of samples of a row; and the bound on rows: n samples give at most
/// n * kRowsPerSample + kRowsExtra.
inline constexpr Property<std::int64_t> kWindow{"window"};
inline constexpr Property<double> kRowsPerSample{"rows_per_sample"};
inline constexpr Property<double> kRowsExtra{"rows_extra"};
/// The description of the rows.
inline constexpr Property<std::shared_ptr<const FeatureInfo>> kFeatures{"features"};
/// The source's store of decoded audio, to be filled by the first node that can.
inline constexpr Property<std::shared_ptr<Feed>> kFeed{"feed"};
/// The source's hashes of files' contents, to be filled in by the first node that can.
inline constexpr Property<std::shared_ptr<ContentHashes>> kContents{"contents"};
/// The most bytes of a file that lies in memory.
/// The libraries that decide the samples, with their versions; nothing where there are none.
inline constexpr Property<std::string> kLibraries{"libraries"};
/// What the list of files says of every file.
inline constexpr Property<std::shared_ptr<const ManifestFields>> kManifestFields{"manifest_fields"};
/// Whether an item is a recording with utterances that are to be cut out of it.
inline constexpr Property<bool> kHasUtterances{"has_utterances"};
/// Whether every route before decides by the content of a file, not by its entry in a list, so that
/// an unchanged file takes the same branch. Nothing where there is no route.
inline constexpr Property<bool> kIsRoutedByContent{"is_routed_by_content"};
/// The chain on devices that an item is in.
inline constexpr Property<std::shared_ptr<CudaRun>> kCudaRun{"cuda"};

}  // namespace property

}  // namespace melflow
