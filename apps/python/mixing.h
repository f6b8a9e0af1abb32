// The order in which samples of several sources come, each source by its weight (Python: Mix).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/python/epoch_order.h"

namespace melflow {

struct MixSource {
  std::vector<std::int64_t> samples;  ///< their numbers, rising
  double weight = 0;                  ///< > 0, in relation to the others
  EpochOrder::Recordings together;    ///< of its samples
};

struct Mix {
  enum class End { with_first, with_last, after };
  std::vector<MixSource> sources;
  /// Of all samples, by number, what weights are shares of; empty: each sample counts the same.
  std::vector<std::int64_t> lengths;
  End end = End::with_first;  ///< with the last sample of which source, or after `samples`
  std::uint64_t samples = 0;
  bool repeats = true;  ///< whether a source begins again after its last sample
  bool shuffles = true;
  std::uint64_t seed = 0, epoch = 0;
};

struct MixedOrder {
  std::vector<std::int64_t> samples;
  std::vector<std::uint64_t>
      ended;  ///< of each source, after how many of all samples its last one had come first; 0: it had not
};

/// Returns the order of an epoch. At its every place each source has had its share of the samples
/// to within one sample or, by length, to within the longest sample: the next one is the one that
/// would end first in a fluid mix, among those which would have begun there (WF2Q; Bennett and
/// Zhang, INFOCOM 1996, theorem 1). When a source has ended that does not repeat, the others start
/// anew with their weights. Throws std::invalid_argument for more than 2^31 samples.
MixedOrder mixed_order(const Mix& mix);

}  // namespace melflow
