// The choice that feed: auto makes from the corpus and the machine (docs/feeding.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/base/value.h"
#include "stages/audio/store/cache_store.h"
#include "stages/manifest.h"

namespace melflow {

struct FeedFacts {
  int uses = 1;             ///< how often the audio will be used, including this run
  std::size_t sampled = 0;  ///< files that were examined
  double cached = 0;        ///< share of these in a valid cache
  /// Share of their bytes in the page cache; nullopt if the system does not tell.
  std::optional<double> warm;
  bool is_plain = false;            ///< all of these store their samples in the form of the store
  std::uint64_t file_bytes = 0;     ///< of all files [bytes]
  std::uint64_t decoded_bytes = 0;  ///< of all samples [bytes]
  std::uint64_t disk_free = 0;      ///< on the file system of the cache [bytes]
  std::uint64_t memory_free = 0;    ///< [bytes]
};

struct FeedChoice {
  bool caches = false;  ///< false: everything is streamed
  std::string why;
};
FeedChoice choose_feed(const FeedFacts& facts);

/// How much memory or disk decoded audio takes, by headers of some files.
struct ExpectedAudio {
  std::uint64_t bytes = 0;  ///< of the samples of all files; 0: headers do not tell
  std::size_t files = 0;    ///< whose headers were read
  bool is_exact = false;    ///< the headers of all files were read
};
/// Reads the headers of some files, spread evenly over the manifest. `settings`: all settings that
/// determine the samples.
ExpectedAudio expected_audio(const Manifest& manifest, const Value& settings);

/// Gathers the facts from some files, spread evenly over the manifest. `settings`: all settings
/// that determine the samples.
FeedFacts look_at_corpus(const Manifest& manifest, const Value& settings, const CachePlace& place,
                         int uses);

}  // namespace melflow
