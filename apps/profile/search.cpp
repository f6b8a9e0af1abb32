#include "apps/profile/search.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "apps/profile/figures.h"
#include "pipeline/option_type.h"
#include "pipeline/problem.h"

namespace melflow {
namespace {

constexpr double kNotSlower = 0.97;  // a single run; a slower one is not looked at again
constexpr double kFaster = 1.02;     // the middle of the pairs that decide
constexpr double kWorthIt = 1.03;    // of all changes together
constexpr double kLooking = 0.7, kDropping = 0.85;  // shares of the time, from the beginning
constexpr int kDecide = 5, kConfirm = 9;            // pairs, at most

double number_of(const SearchedOption& option, const std::string& text) {
  if (Bytes bytes; option.is_size && OptionType<Bytes>::parse(Value::scalar(text), bytes).empty())
    return static_cast<double>(bytes.count);
  double number = 0;
  return OptionType<double>::parse(Value::scalar(text), number).empty() ? number : 0;
}

std::string text_of(const SearchedOption& option, double number) {
  const auto whole = static_cast<std::uint64_t>(std::llround(number));
  return option.is_size ? to_text(Bytes{whole}) : std::to_string(whole);
}

std::vector<std::string> values_beside(const SearchedOption& option, const std::string& now) {
  std::vector<std::string> out;
  for (const std::string& c : option.choices) out.push_back(c);
  if (option.choices.empty())
    if (const double number = number_of(option, now); number > 0)
      for (const double other : {2 * number, number / 2})
        if (other >= option.lowest && other <= option.highest && other >= 1)
          out.push_back(text_of(option, other));
  if (option.is_written) out.push_back(option.otherwise);
  std::erase(out, now);
  return out;
}

}  // namespace

std::string Search::value_of(const std::string& option, const Settings& settings) const {
  for (const auto& [name, value] : settings)
    if (name == option) return value;
  for (const SearchedOption& o : options_)
    if (o.name == option) return o.now;
  return "";
}

// The best so far, with these; what is as in the file is left out.
Search::Settings Search::with(const Settings& settings) const {
  Settings out = settings;
  for (const auto& [name, value] : best_)
    if (std::none_of(settings.begin(), settings.end(),
                     [&](const auto& s) { return s.first == name; }))
      out.emplace_back(name, value);
  std::erase_if(out, [this](const auto& s) { return s.second == value_of(s.first, {}); });
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<Search::Trial> Search::trial(const Settings& settings) {
  ++runs_;
  return uses_.run(settings);
}

Search::Pairs Search::pairs(const Settings& without, const Settings& with, int least, int most,
                            double share) {
  std::vector<double> ratios;
  int faster = 0;
  for (int i = 0; i < most && (i < least || has_time(share)); ++i) {
    const auto a = trial(without), b = trial(with);
    if (!a || !b) break;
    ratios.push_back(b->files_per_second / a->files_per_second);
    faster += ratios.back() > 1 ? 1 : 0;
    last_ = *b;
    const int count = i + 1;
    if (most == kDecide && count == least && (faster == 0 || faster == count)) break;
  }
  if (ratios.empty()) return {};
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  return {median(ratios), *low, *high, static_cast<int>(ratios.size()), faster};
}

bool Search::accepts(const Settings& further) {
  const Settings settings = with(further);
  if (settings == best_ || !tried_.insert(settings).second) return false;
  const Trial before = last_;
  const auto first = trial(settings);
  if (!first) return false;
  const double ratio = first->files_per_second / before.files_per_second;
  if (uses_.tell) uses_.tell(further, ratio);
  if (ratio < kNotSlower) return false;
  const Pairs evidence = pairs(best_, settings, 2, kDecide, 1);
  if (!evidence.are_faster(kFaster)) {
    last_ = before;
    return false;
  }
  best_ = settings;
  steps_.push_back({further, evidence});
  return true;
}

std::vector<Search::Settings> Search::neighbours() {
  std::vector<Settings> out;
  for (const SearchedOption& o : options_)
    for (const std::string& value : values_beside(o, value_of(o.name, best_)))
      out.push_back({{o.name, value}});
  std::mt19937_64 chance(seed_);
  std::shuffle(out.begin(), out.end(), chance);
  return out;
}

// Of several changes some may have come to nothing by others.
void Search::drop_what_brings_nothing() {
  for (const auto& setting : Settings(best_)) {
    if (best_.size() == 1 || !has_time(kDropping)) return;
    Settings without = best_;
    std::erase(without, setting);
    const Pairs p = pairs(best_, without, 2, kDecide, kDropping);
    if (p.count >= 2 && p.middle >= 0.99) best_ = std::move(without);
  }
}

Search::Result Search::run() {
  begin_ = uses_.seconds();
  const auto as_it_is = [this] {
    const auto out = trial({});
    if (!out) throw RunError("the pipeline cannot be run as it is");
    return *out;
  };
  as_it_is();  // warms up
  last_ = as_it_is();
  tried_.insert(Settings{});
  for (bool has_changed = true; has_changed && has_time(kLooking);) {
    has_changed = false;
    std::vector<Settings> candidates;
    const auto is_known = [this](const auto& setting) {
      return std::any_of(options_.begin(), options_.end(),
                         [&](const SearchedOption& o) { return o.name == setting.first; });
    };
    for (const Hint& hint : last_.hints)  // memory is the user's to give
      if (std::all_of(hint.sets.begin(), hint.sets.end(), is_known))
        candidates.push_back(hint.sets);
    Settings plain;
    for (const SearchedOption& o : options_)
      if (o.is_written && o.now != o.otherwise) plain.emplace_back(o.name, o.otherwise);
    if (!plain.empty()) candidates.push_back(plain);
    for (Settings& s : neighbours()) candidates.push_back(std::move(s));
    for (const Settings& further : candidates)
      if (has_time(kLooking) && accepts(further)) {
        has_changed = true;
        break;
      }
  }
  drop_what_brings_nothing();
  Result out;
  out.tried = static_cast<int>(tried_.size()) - 1;
  if (!best_.empty()) out.together = pairs({}, best_, 3, kConfirm, 1);
  out.runs = runs_;
  if (!out.together.are_faster(kWorthIt)) return out;
  for (const auto& [name, value] : best_) {
    Change change{name, value_of(name, {}), value, {}, 0};
    for (const Step& step : steps_)
      if (std::any_of(step.settings.begin(), step.settings.end(),
                      [&](const auto& s) { return s.first == name && s.second == value; }))
        change.evidence = step.evidence, change.others = static_cast<int>(step.settings.size()) - 1;
    out.changes.push_back(std::move(change));
  }
  return out;
}

}  // namespace melflow
