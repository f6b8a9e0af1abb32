#include "apps/check/findings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "apps/profile/figures.h"
#include "pipeline/base/problem.h"
#include "stages/output/formats/feature_file.h"
#include "stages/output/row_sink.h"
#include "stages/routing/amount.h"

namespace melflow {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The first sink of rows, where recordings are measured; null for none.
const RowSink* measured_sink(const Plan& plan) {
  const RowSink* sink = nullptr;
  bool is_measured = false;
  for (const PlanNode& n : plan.nodes) {
    is_measured = is_measured || n.info->name == "quality";
    if (sink == nullptr) sink = dynamic_cast<const RowSink*>(n.stage.get());
  }
  return is_measured ? sink : nullptr;
}

// The first sink of rows of the stage fingerprint; null for none.
const RowSink* fingerprint_sink(const Plan& plan) {
  for (const PlanNode& n : plan.nodes)
    if (const auto* sink = dynamic_cast<const RowSink*>(n.stage.get()); sink != nullptr)
      if (has_fingerprints(to_json(sink->feature_settings()))) return sink;
  return nullptr;
}

// How many of `all` recordings are so, and whether that is within the bound.
Verdict verdict_on(const char* what, const CountBound& bound, std::size_t recordings,
                   std::size_t all) {
  const auto count = static_cast<double>(recordings);
  const double value = !bound.is_share ? count : all > 0 ? count / static_cast<double>(all) : 0;
  return {what, bound.text, bound.is_share ? Verdict::Unit::share : Verdict::Unit::files, value,
          bound.is_met_by(value)};
}

// The measure that says where something begins.
std::optional<Measure> place_of(Measure what) {
  switch (what) {
    case Measure::clipped_share:
    case Measure::clipped_runs:
      return Measure::clipped_at;
    case Measure::silent_share:
    case Measure::silent_longest:
      return Measure::silent_at;
    case Measure::dropouts:
      return Measure::dropout_at;
    case Measure::repeats:
      return Measure::repeat_at;
    case Measure::clicks:
      return Measure::click_at;
    default:
      return std::nullopt;
  }
}

// What a condition is about, for a number.
struct Subject {
  Fact fact = Fact::path;
  std::string name;
};
Subject subject_of(const Criterion& wanted) {
  if (wanted.measure != nullptr) return {Fact::measure, wanted.measure->name};
  if (wanted.key == "duration") return {Fact::duration, ""};
  if (wanted.key == "rate") return {Fact::sample_rate, ""};
  if (wanted.key == "peak") return {Fact::peak, ""};
  constexpr std::string_view kTarget = "target.";
  if (wanted.key.starts_with(kTarget)) return {Fact::target, wanted.key.substr(kTarget.size())};
  return {};
}

// Puts those farthest from what is usual first.
void order(Check& check, std::vector<double> values) {
  if (values.empty()) return;
  const double usual = median(std::move(values));
  std::stable_sort(check.found.begin(), check.found.end(), [&](const auto& a, const auto& b) {
    return std::abs(a.value - usual) > std::abs(b.value - usual);
  });
}

Check check_of(const FeatureData& output, const Criterion& wanted) {
  Check out{.name = wanted.key, .wanted = wanted.wanted, .measure = wanted.measure};
  const Subject about = subject_of(wanted);
  std::vector<double> values;
  for (std::size_t i = 0; i < output.files.size(); ++i) {
    const FeatureData::Entry& e = output.files[i];
    if (e.status != FeatureData::Status::ok) continue;
    const StoredFacts facts(output, e);
    double value = kNone;
    if (about.fact != Fact::path) {
      const auto number = facts.number(about.fact, about.name);
      if (!number) continue;
      values.push_back(value = *number);
    }
    ++out.judged;
    if (wanted.condition.failing(facts, Conditions::Undecided::fails).empty()) continue;
    const auto place =
        wanted.measure != nullptr ? place_of(measure_of(*wanted.measure)) : std::nullopt;
    out.found.push_back({i, value, place && e.measured ? (*e.measured)[*place] : kNone});
    out.seconds += e.duration;
  }
  order(out, std::move(values));
  return out;
}

Check text_lengths(const FeatureData& output) {
  Check out{.name = kTextLength,
            .wanted = "as usual for its label",
            .measure = measure_named("seconds_per_character")};
  std::map<std::int32_t, std::vector<std::size_t>> by_label;
  const auto value_of = [&](std::size_t i) {
    const FeatureData::Entry& e = output.files[i];
    return e.status != FeatureData::Status::ok || e.measured == nullptr
               ? kNone
               : static_cast<double>((*e.measured)[Measure::seconds_per_character]);
  };
  std::vector<double> all;
  for (std::size_t i = 0; i < output.files.size(); ++i)
    if (value_of(i) > 0) by_label[output.files[i].label].push_back(i), all.push_back(value_of(i));
  for (const auto& [label, files] : by_label) {
    if (files.size() < kTextFewest) continue;
    std::vector<double> logs;
    for (const std::size_t i : files) logs.push_back(std::log(value_of(i)));
    const double usual = median(logs);
    std::vector<double> away;
    for (const double l : logs) away.push_back(std::abs(l - usual));
    const double deviation = 1.4826 * median(away);
    out.judged += files.size();
    for (std::size_t k = 0; k < files.size(); ++k) {
      if (deviation <= 0 || away[k] <= kTextDeviations * deviation) continue;
      out.found.push_back({files[k], value_of(files[k]), kNone});
      out.seconds += output.files[files[k]].duration;
    }
  }
  order(out, std::move(all));
  return out;
}

}  // namespace

CheckedCorpus check_corpus(const FeatureData& output, const std::vector<Criterion>& wanted) {
  CheckedCorpus out;
  out.is_faulty.assign(output.files.size(), false);
  for (const Criterion& one : wanted) out.checks.push_back(check_of(output, one));
  if (Check texts = text_lengths(output); texts.judged > 0) out.checks.push_back(std::move(texts));
  for (const Check& check : out.checks)
    for (const Finding& f : check.found) out.is_faulty[f.file] = true;
  for (std::size_t i = 0; i < output.files.size(); ++i) {
    if (output.files[i].status != FeatureData::Status::ok) continue;
    ++out.ok;
    out.seconds += output.files[i].duration;
    if (!out.is_faulty[i]) continue;
    ++out.faulty;
    out.faulty_seconds += output.files[i].duration;
  }
  return out;
}

CountBound none_faulty() {
  CountBound out;
  out.comparison = Bound::Comparison::at_most;
  out.text = "<= 0";
  return out;
}

Verdict verdict_on_recordings(const RecordingExpectations& expected, std::size_t faulty,
                              std::size_t ok) {
  return verdict_on("recordings.faulty", expected.faulty.value_or(none_faulty()), faulty, ok);
}

Verdict verdict_on_duplicates(const CountBound& across_splits, const Duplicates& found) {
  return verdict_on("recordings.across_splits", across_splits, found.across, found.compared);
}

std::vector<Verdict> verdicts_on_recordings(const Plan& plan) {
  const auto set = plan.services.find<Expectations>();
  if (!set || !set->recordings) return {};
  const RecordingExpectations& expected = *set->recordings;
  std::vector<Verdict> out;
  if (const RowSink* const sink = measured_sink(plan); expected.has_conditions() && sink) {
    const std::vector<Criterion> wanted = criteria_of(expected);
    std::size_t faulty = 0, ok = 0;
    for (const std::string& path : sink->written()) {
      const FeatureFile output(path);
      const CheckedCorpus checked = check_corpus(output.data(), wanted);
      faulty += checked.faulty;
      ok += checked.ok;
    }
    out.push_back(verdict_on_recordings(expected, faulty, ok));
  }
  if (const RowSink* const sink = fingerprint_sink(plan); expected.across_splits && sink) {
    std::vector<std::unique_ptr<const FeatureFile>> files;
    std::vector<const FeatureFile*> outputs;
    for (const std::string& path : sink->written())
      outputs.push_back(files.emplace_back(std::make_unique<FeatureFile>(path)).get());
    out.push_back(verdict_on_duplicates(*expected.across_splits, find_duplicates(outputs, {}, {})));
  }
  return out;
}

void check_recording_expectations(const Plan& plan) {
  const auto expected = plan.services.find<Expectations>();
  if (!expected || !expected->recordings) return;
  if (expected->recordings->across_splits && fingerprint_sink(plan) == nullptr)
    throw ConfigError(
        "expect.recordings.across_splits: no output of this pipeline says what sounds alike; put a "
        "node of the stage fingerprint behind decode, and behind it a node that writes rows");
  if (!expected->recordings->has_conditions()) return;
  criteria_of(*expected->recordings);
  if (measured_sink(plan) == nullptr)
    throw ConfigError(
        "expect.recordings: no output of this pipeline says how recordings are; put a node of the "
        "stage quality behind decode, before a node that writes rows");
}

std::string value_text(const Check& check, double value) {
  if (std::isnan(value)) return "";
  if (check.measure != nullptr) return amount_text(amounts_of(check.measure->unit), value);
  return amount_text(check.name == "duration" ? Fact::duration
                     : check.name == "rate"   ? Fact::sample_rate
                     : check.name == "peak"   ? Fact::peak
                                              : Fact::target,
                     value);
}

}  // namespace melflow
