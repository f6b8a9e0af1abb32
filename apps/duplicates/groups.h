// Which recordings of outputs sound alike, and the groups that they form.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stages/output/formats/feature_file.h"

namespace melflow {

struct DuplicateOptions {
  double least = 2;  ///< of a stretch that two recordings share [s]
  double share =
      0.5;  ///< that it must be of the sound of the shorter one for the two to form a group
  std::size_t common = 0;                       ///< fingerprint::MatchOptions::common
  std::size_t memory = std::size_t{512} << 20;  ///< about [bytes]
  std::string with;  ///< recordings with one text in this column are of one group; "": none
};

/// What two recordings are to each other, by what is known of them.
enum class Likeness {
  same_bytes,  ///< the files are equal, by the hash of `update_by: content`
  same_words,  ///< the fingerprints are: the same samples, or as good as that
  copy,        ///< nine tenths of both are alike
  cut,         ///< nine tenths of the shorter one are in the other
  stretch,     ///< less
};
const char* to_text(Likeness likeness);

struct ListedRecording {
  const FeatureFile* output;
  const FeatureFile::Entry* entry;
  bool is_old;             ///< of an output that the others are compared with
  std::size_t group;       ///< number of the first recording of its group
  std::size_t in_group;    ///< recordings of its group
  bool is_across = false;  ///< one of the pairs that joined it is_across
  [[nodiscard]] std::string split() const {
    return entry->split < 0 ? "" : output->splits()[static_cast<std::size_t>(entry->split)];
  }
};

struct LikePair {
  std::size_t a = 0, b = 0;  ///< numbers of recordings, a < b
  Likeness likeness{};
  double begin_a = 0, begin_b = 0, seconds = 0;  ///< where they are alike [s]
  double score = 0;        ///< 1 less twice the share of bits that differ: 0 is by chance
  bool is_joined = false;  ///< whether the two are of one group for it
  bool is_across = false;  ///< of different splits, or one is old
};

struct Duplicates {
  std::vector<ListedRecording> recordings;  ///< those that are ok: old ones first, by their paths
  std::vector<LikePair> pairs;              ///< by a and b
  std::size_t grouped = 0, groups = 0;      ///< of two recordings or more
  std::size_t across = 0, compared = 0;     ///< new recordings: in a group that is_across; all
  /// Those of which nothing is known: they failed in the run, were skipped there, or have less
  /// sound that changes than DuplicateOptions::least.
  std::vector<const FeatureFile::Entry*> failed, skipped, silent;
};

/// Whether rows with these settings, as outputs have them, are those of the stage fingerprint.
bool has_fingerprints(const std::string& feature_settings);
bool has_fingerprints(const FeatureFile& output);

/// Uses a folder in TMPDIR. Throws RunError where an output has no fingerprints, and ConfigError
/// for an unknown column.
Duplicates find_duplicates(const std::vector<const FeatureFile*>& outputs,
                           const std::vector<const FeatureFile*>& against,
                           const DuplicateOptions& options);

}  // namespace melflow
