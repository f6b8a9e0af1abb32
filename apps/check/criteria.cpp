#include "apps/check/criteria.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "config/yaml_text.h"
#include "pipeline/base/near_names.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

using Where = std::vector<std::pair<std::string, std::string>>;

// `other` in place of those of `basis` with the same keys, and after them.
Where with(Where basis, const Where& other) {
  for (const auto& one : other) {
    const auto at = std::find_if(basis.begin(), basis.end(),
                                 [&](const auto& known) { return known.first == one.first; });
    if (at == basis.end())
      basis.push_back(one);
    else
      at->second = one.second;
  }
  return basis;
}

const Where& damage() {
  static const Where out{{"quality.clipped_share", "< 0.1%"},
                         {"quality.dc", "< 0.01"},
                         {"quality.silent_longest", "< 2s"},
                         {"quality.dead_channels", "< 1"},
                         {"quality.inverted_channels", "< 1"},
                         {"quality.dropouts", "< 1"},
                         {"quality.repeats", "< 1"},
                         {"quality.hum", "< 9dB"},
                         {"quality.lost_share", "< 0.1%"},
                         {"quality.rate_ratio", "0.99..1.01"},
                         {"quality.length_ratio", "0.95..1.05"}};
  return out;
}

Criterion criterion(const std::string& key, const Value& wanted, const std::string& where) {
  Criterion out{.key = key, .wanted = yaml_flow(wanted)};
  if (wanted.is_scalar()) out.wanted = wanted.text();
  if (key == "channels" || key == "path" || key == "size")
    throw ConfigError(
        fmt::format(
            "{}{}: recordings are not judged by this; by what else a filter takes, they are "
            "(docs/quality.md)",
            where, key),
        wanted.mark());
  const std::string why = Conditions::parse(Value::map({{key, wanted}}), out.condition);
  if (!why.empty()) throw ConfigError(where + why, wanted.mark());
  constexpr std::string_view kMeasure = "quality.";
  if (key.starts_with(kMeasure))
    out.measure = measure_named(std::string_view(key).substr(kMeasure.size()));
  return out;
}

}  // namespace

const std::vector<Profile>& profiles() {
  static const std::vector<Profile> out{
      {"any", "damage, whatever the recordings are for", damage()},
      {"asr", "speech recognition",
       with(damage(), {{"quality.rms", "> -50dB"},
                       {"quality.quiet_longest", "< 5s"},
                       {"quality.snr", "> 10dB"},
                       {"quality.bandwidth", "> 3kHz"},
                       {"quality.seconds_per_character", "0.03s..0.25s"}})},
      {"tts", "speech synthesis",
       with(damage(), {{"quality.clipped_share", "< 0.01%"},
                       {"quality.silent_longest", "< 1s"},
                       {"quality.clicks", "< 1"},
                       {"quality.rms", "> -40dB"},
                       {"quality.quiet_longest", "< 2s"},
                       {"quality.snr", "> 25dB"},
                       {"quality.bandwidth", "> 7kHz"},
                       {"quality.seconds_per_character", "0.03s..0.2s"}})},
      {"speaker", "recognition of speakers",
       with(damage(), {{"quality.rms", "> -50dB"},
                       {"quality.quiet_share", "< 60%"},
                       {"quality.snr", "> 5dB"},
                       {"quality.bandwidth", "> 3kHz"}})},
      {"music", "music",
       with(damage(), {{"quality.equal_channels", "< 1"},
                       {"quality.clicks", "< 1"},
                       {"quality.quiet_longest", "< 5s"},
                       {"quality.bandwidth", "> 15kHz"}})}};
  return out;
}

std::vector<Criterion> criteria_of(const RecordingExpectations& expected) {
  std::vector<Criterion> out;
  const std::string at = "expect.recordings.";
  if (!expected.profile.empty()) {
    std::vector<std::string> names;
    for (const Profile& p : profiles()) names.emplace_back(p.name);
    const auto known = std::find(names.begin(), names.end(), expected.profile);
    if (known == names.end())
      throw ConfigError(fmt::format("{}profile: '{}' {}", at, excerpt(expected.profile),
                                    not_one_of(expected.profile, names, "docs/quality.md")));
    for (const auto& [key, wanted] :
         profiles()[static_cast<std::size_t>(known - names.begin())].where)
      out.push_back(criterion(key, Value::scalar(wanted), ""));
  }
  for (const Value::Entry& e : expected.where.map.entries()) {
    const auto known =
        std::find_if(out.begin(), out.end(), [&](const Criterion& r) { return r.key == e.key; });
    if (e.value.is_null()) {
      if (known == out.end())
        throw ConfigError(fmt::format("{}where: {}: null takes a condition of the profile out, "
                                      "which has none of this name",
                                      at, excerpt(e.key)),
                          e.value.mark());
      out.erase(known);
    } else if (known != out.end()) {
      *known = criterion(e.key, e.value, at + "where: ");
    } else {
      out.push_back(criterion(e.key, e.value, at + "where: "));
    }
  }
  return out;
}

Value filter_of(const std::vector<Criterion>& criteria) {
  Value out = Value::map({});
  for (const Criterion& one : criteria) {
    const Value wanted = one.condition.written().entries().front().value;
    std::vector<Value> any = wanted.is_list() ? wanted.items() : std::vector{wanted};
    if (one.measure != nullptr) any.push_back(Value::scalar("unknown"));
    out.set(one.key, any.size() > 1 ? Value::list(std::move(any)) : wanted);
  }
  return out;
}

std::vector<std::string> StoredFacts::texts(Fact fact, const std::string& name) const {
  std::vector<std::string> out;
  if (fact == Fact::path) return {entry_.path};
  if (fact == Fact::label && !entry_.labels.empty()) {
    for (const std::int32_t l : entry_.labels)
      out.push_back(output_.labels.at(static_cast<std::size_t>(l)));
    return out;
  }
  std::string text = output_.text_of(entry_, fact == Fact::label   ? "label"
                                             : fact == Fact::split ? "split"
                                                                   : name);
  if (fact == Fact::column || !text.empty()) out.push_back(std::move(text));
  return out;
}

std::optional<double> StoredFacts::number(Fact fact, const std::string& name) const {
  const auto known = [](double value, bool is_known) {
    return is_known && !std::isnan(value) ? std::optional(value) : std::nullopt;
  };
  const auto measured = [&](Measure which) {
    return entry_.measured == nullptr ? std::nullopt : known((*entry_.measured)[which], true);
  };
  if (fact == Fact::sample_rate) return known(entry_.sample_rate, entry_.sample_rate > 0);
  if (fact == Fact::duration) return known(entry_.duration, entry_.sample_rate > 0);
  if (fact == Fact::peak) return measured(Measure::peak);
  if (const MeasureInfo* which = measure_named(name); fact == Fact::measure && which != nullptr)
    return measured(measure_of(*which));
  const auto target = std::find(output_.targets.begin(), output_.targets.end(), name);
  if (fact != Fact::target || target == output_.targets.end()) return std::nullopt;
  return known(entry_.targets.at(static_cast<std::size_t>(target - output_.targets.begin())), true);
}

}  // namespace melflow
