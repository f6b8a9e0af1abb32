// What recordings have to be like: the profiles, the conditions of `expect.recordings`, and how
// those of an output are judged by them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/expectations.h"
#include "stages/output/formats/feature_data.h"
#include "stages/routing/conditions.h"

namespace melflow {

/// Conditions that recordings of a certain use should meet.
struct Profile {
  std::string_view name, use;
  std::vector<std::pair<std::string, std::string>> where;  ///< keys and conditions, as in filter
};
const std::vector<Profile>& profiles();

/// One condition that recordings should meet.
struct Criterion {
  std::string key, wanted;               ///< "quality.snr", "> 10dB"
  const MeasureInfo* measure = nullptr;  ///< what it is about; null for anything but a measure
  Conditions condition = {};
};

/// The conditions of the profile with those of `where` in their places, in the order written.
/// Throws ConfigError for an unknown profile, a wrong condition, or one about what outputs do not
/// store.
std::vector<Criterion> criteria_of(const RecordingExpectations& expected);

/// As `where` of a filter that keeps what meets them.
Value filter_of(const std::vector<Criterion>& criteria);

/// What an output says about a recording.
class StoredFacts final : public KnownFacts {
 public:
  StoredFacts(const FeatureData& output, const FeatureData::Entry& entry)
      : output_(output), entry_(entry) {}
  [[nodiscard]] std::vector<std::string> texts(Fact fact, const std::string& name) const override;
  [[nodiscard]] std::optional<double> number(Fact fact, const std::string& name) const override;

 private:
  const FeatureData& output_;
  const FeatureData::Entry& entry_;
};

}  // namespace melflow
