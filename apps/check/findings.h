// What is wrong with the recordings of an output, by what they should be like.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "apps/check/criteria.h"
#include "apps/duplicates/groups.h"
#include "apps/profile/verdicts.h"
#include "pipeline/plan/plan.h"

namespace melflow {

struct Finding {
  std::size_t file = 0;  ///< number of the recording
  double value = 0;      ///< NaN where it is about a text
  double at = 0;         ///< where in the recording it begins [s]; NaN where no place is known
};

/// One thing that is checked of all recordings.
struct Check {
  std::string name, wanted;              ///< "quality.snr", "> 10dB"
  const MeasureInfo* measure = nullptr;  ///< null for anything but a measure
  std::size_t judged = 0;                ///< recordings that have a value
  std::vector<Finding> found = {};       ///< those that are not as wanted, the worst first
  double seconds = 0;                    ///< of these, together
};

/// Name of the check of text against duration.
inline constexpr const char* kTextLength = "text_length";

struct CheckedCorpus {
  std::vector<Check> checks;
  std::vector<bool> is_faulty;  ///< of each recording
  std::size_t ok = 0, faulty = 0;
  double seconds = 0, faulty_seconds = 0;
};

/// Judges the recordings that are ok. Where texts are there (quality.seconds_per_character), also
/// finds those far from what is usual for their label: the logarithm more than kTextDeviations
/// deviations (1.4826 times the median of distances) from its median, among kTextFewest or more.
CheckedCorpus check_corpus(const FeatureData& output, const std::vector<Criterion>& wanted);
inline constexpr double kTextDeviations = 6;
inline constexpr std::size_t kTextFewest = 30;

/// What is expected where expect.recordings does not say how many may be faulty.
CountBound none_faulty();
/// Whether no more recordings have a fault than are expected to.
Verdict verdict_on_recordings(const RecordingExpectations& expected, std::size_t faulty,
                              std::size_t ok);
/// Whether no more recordings sound like one of another split, or an old one, than this.
Verdict verdict_on_duplicates(const CountBound& across_splits, const Duplicates& found);
/// Both for what a run has written, where its configuration expects them.
std::vector<Verdict> verdicts_on_recordings(const Plan& plan);

/// Throws ConfigError where a plan expects something of recordings that cannot be judged.
void check_recording_expectations(const Plan& plan);

/// A value with its unit: "12.3 dB".
std::string value_text(const Check& check, double value);

}  // namespace melflow
