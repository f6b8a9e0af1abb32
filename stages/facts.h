// What stages tell each other along the edges before a run, key by key. Requirements go up from
// the stage that needs something to one that can see to it; properties come down with the items.
#pragma once

#include <cstdint>
#include <memory>
#include <set>

#include "pipeline/facts.h"
#include "pipeline/number_type.h"

namespace melflow {

class CudaRun;
class Feed;
struct ContentHashes;
struct EarlierFiles;
struct FeatureInfo;
struct WindowGrid;

namespace requirement {

/// The rate that samples must have [Hz]: of a front end that has one, met by a resampler.
inline constexpr Requirement<double, merge::Equal> kSampleRate{"sample_rate"};
/// Blocks of files slower than this have to be shorter in proportion [Hz]: of a resampler.
inline constexpr Requirement<double, merge::Largest> kLowestRate{"lowest_rate"};
/// Samples of one block that frames of the next one need: of a front end.
inline constexpr Requirement<std::int64_t, merge::Largest> kContext{"context"};
/// Types in which the readers of rows want them (row_type.h).
inline constexpr Requirement<std::set<NumberType>, merge::Union> kRowTypes{"row_types"};
/// The chain on devices that a batch goes to: of its node cuda_mel.
inline constexpr Requirement<std::shared_ptr<CudaRun>, merge::First> kCudaRun{"cuda"};
/// The files of an earlier output, for the source of an update: of a sink.
inline constexpr Requirement<std::shared_ptr<const EarlierFiles>, merge::First> kEarlierFiles{
    "earlier_files"};

}  // namespace requirement

namespace property {

/// [Hz]
inline constexpr Property<double> kSampleRate{"sample_rate"};
/// How streams are cut into rows; none: as they are framed.
inline constexpr Property<WindowGrid> kWindowGrid{"windows"};
/// What follows from that: samples of a row; and that n samples give at most n * kRowsPerSample +
/// kRowsExtra rows.
inline constexpr Property<std::int64_t> kWindow{"window"};
inline constexpr Property<double> kRowsPerSample{"rows_per_sample"};
inline constexpr Property<double> kRowsExtra{"rows_extra"};
/// What rows are.
inline constexpr Property<std::shared_ptr<const FeatureInfo>> kFeatures{"features"};
/// The source's store of decoded audio, which the first node that can fills.
inline constexpr Property<std::shared_ptr<Feed>> kFeed{"feed"};
/// Where the source wants hashes of contents, which the first node that can notes.
inline constexpr Property<std::shared_ptr<ContentHashes>> kContents{"contents"};
/// The chain on devices that an item is in.
inline constexpr Property<std::shared_ptr<CudaRun>> kCudaRun{"cuda"};

}  // namespace property

}  // namespace melflow
