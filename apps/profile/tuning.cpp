#include "apps/profile/tuning.h"

#include <algorithm>
#include <map>
#include <random>

#include "apps/profile/figures.h"

namespace melflow {

Settings with_changes(const Settings& base, const Settings& changes) {
  std::map<std::string, std::string> all(base.begin(), base.end());
  for (const auto& [name, value] : changes) all[name] = value;
  return {all.begin(), all.end()};
}

TuningSearch::TuningSearch(std::vector<TunableOption> options, std::uint64_t seed)
    : options_(std::move(options)) {
  for (std::size_t i = 0; i < options_.size(); ++i) {
    if (options_[i].is_unusual()) single_.emplace_back(i, options_[i].usual);
    for (const std::string& value : options_[i].others) single_.emplace_back(i, value);
  }
  std::mt19937_64 random(seed);
  std::shuffle(single_.begin(), single_.end(), random);
  proposed_.insert(Settings{});
}

bool TuningSearch::is_new(const Settings& settings) { return proposed_.insert(settings).second; }

bool TuningSearch::may_change(const Settings& settings) const {
  return std::all_of(settings.begin(), settings.end(), [&](const auto& setting) {
    return std::any_of(options_.begin(), options_.end(),
                       [&](const TunableOption& o) { return o.name == setting.first; });
  });
}

Settings TuningSearch::next(const Settings& best, const Limits& limits) {
  for (const Hint& hint : limits.hints) {
    Settings out = with_changes(best, hint.sets);
    if (may_change(hint.sets) && is_new(out)) return out;
  }
  Settings usual;
  for (const TunableOption& o : options_)
    if (o.is_unusual()) usual.emplace_back(o.name, o.usual);
  if (Settings out = with_changes({}, usual); is_new(out)) return out;
  for (const bool at_limit : {true, false})
    for (const auto& [option, value] : single_) {
      if (at_limit && (limits.node.empty() || options_[option].node != limits.node)) continue;
      Settings out = with_changes(best, {{options_[option].name, value}});
      if (is_new(out)) return out;
    }
  return {};
}

double reached(const Gain& gain, const Hint& hint, double before) {
  return (gain.middle - 1) / (hint.likely / before - 1);
}

bool is_as_predicted(double reached) { return reached >= 0.5 && reached <= 1.5; }

Gain gain_of(const Pairs& pairs, std::uint64_t seed) {
  constexpr std::size_t kDraws = 1000;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < pairs.with.size(); ++i)
    ratios.push_back(pairs.with[i] / pairs.without[i]);
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> any(0, ratios.size() - 1);
  std::vector<double> medians, drawn(ratios.size());
  for (std::size_t d = 0; d < kDraws; ++d) {
    for (double& r : drawn) r = ratios[any(random)];
    medians.push_back(median(drawn));
  }
  std::sort(medians.begin(), medians.end());
  return {median(ratios), medians[kDraws / 40], medians[kDraws - 1 - kDraws / 40]};
}

}  // namespace melflow
