// feed: auto - what is known of a corpus and of the machine, and what follows from it
// (docs/feeding.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/value.h"
#include "stages/audio/store/cache_store.h"
#include "stages/manifest.h"

namespace melflow {

struct FeedFacts {
  int uses = 1;             ///< of the audio, this run among them
  std::size_t sampled = 0;  ///< files that were looked at
  double cached = 0;        ///< share of them that a valid cache holds
  /// Share of their bytes in the page cache; nothing where the system does not say.
  std::optional<double> warm;
  bool is_plain = false;            ///< all of them hold their samples as they are to be stored
  std::uint64_t file_bytes = 0;     ///< of all files [bytes]
  std::uint64_t decoded_bytes = 0;  ///< of all samples [bytes]
  std::uint64_t disk_free = 0;      ///< where the cache would be [bytes]
  std::uint64_t memory_free = 0;    ///< [bytes]
};

struct FeedChoice {
  bool caches = false;  ///< else everything is streamed
  std::string why;
};
FeedChoice choose_feed(const FeedFacts& facts);

/// Looks at some files of the manifest, spread over it evenly. `settings`: the settings that decide
/// about the samples.
FeedFacts look_at_corpus(const Manifest& manifest, const Value& settings, const CachePlace& place,
                         int uses);

}  // namespace melflow
