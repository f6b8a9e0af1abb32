// melflow tune: searches options that make a pipeline faster, and writes the pipeline with them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/profile/figures.h"
#include "apps/profile/tuning.h"
#include "apps/report/format.h"
#include "apps/report/limits_text.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/trials.h"
#include "apps/verbs/tunable_options.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/written_file.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr double kForSearch = 0.7;  // of the budget; the rest compares the result with the original
constexpr double kHopeless = 0.8;   // with less speed-up in the first pair, there is no second pair
constexpr std::size_t kFirstPairs = 3, kLeastLastPairs = 5, kMostLastPairs = 15;

struct TuneArguments {
  TrialArguments trial{.seconds = 2};
  double budget = 60;  ///< [s]
  std::uint64_t seed = 1;
  std::string output;  ///< a file; "": printed
};

struct Tried {
  Settings changes;
  Gain gain;
  std::size_t pairs = 0;
  bool is_kept = false;
};

std::string settings_text(const Settings& settings) {
  std::string out;
  for (const auto& [name, value] : settings)
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, value);
  return out;
}

std::string gain_text(const Gain& g) {
  return fmt::format("{:.2f} times as fast ({:.2f} to {:.2f})", g.middle, g.low, g.high);
}

class Tuning {
 public:
  Tuning(const TuneArguments& arguments, const Trials& trials)
      : arguments_(arguments),
        began_(Clock::now()),
        options_(tunable_options(arguments.trial.plan)),
        trials_(trials),
        search_(options_, arguments.seed) {}

  void run() {
    trials_.show_warnings({{}});
    (void)trials_.run();  // loads the files into memory for all later runs
    Limits& limits = limits_ = find_limits(trials_.run());
    while (left() > (1 - kForSearch) * arguments_.budget) {
      const Settings changes = search_.next(best_, limits);
      if (changes.empty()) break;
      if (const auto found = try_out(changes)) limits = *found;
    }
    if (best_.empty()) return;
    while (last_.with.size() < kLeastLastPairs ||
           (last_.with.size() < kMostLastPairs && left() > 0))
      trials_.add_pair(last_, {}, best_);
    gain_ = gain_of(last_, arguments_.seed);
  }

  /// The files that the pipeline writes when it is run.
  [[nodiscard]] const std::vector<std::string>& outputs() const { return trials_.outputs(); }
  [[nodiscard]] bool is_faster() const { return !best_.empty() && gain_.is_real(); }
  /// Compares the pipeline with and without all changes, in files/s.
  [[nodiscard]] std::string summary() const {
    if (!is_faster())
      return fmt::format("{} changes tried, none makes the pipeline faster by more than noise{}",
                         tried_.size(), best_.empty() ? "" : ": " + gain_text(gain_));
    return fmt::format("{}: {} files/s instead of {}, medians of {} pairs of runs in turn",
                       gain_text(gain_), rate_text(median(last_.with)),
                       rate_text(median(last_.without)), last_.with.size());
  }
  /// Names a promising change that this command must not make, in one line; "" if there is none.
  [[nodiscard]] std::string not_tried() const {
    const std::vector<Hint> hints = hints_not_tried();
    if (hints.empty()) return "";
    return fmt::format(
        "not tried, as it is no option of speed alone: {} → about {} files/s, now {}",
        settings_text(hints[0].sets), rate_text(hints[0].likely),
        rate_text(limits_.files_per_second));
  }
  [[nodiscard]] std::string yaml() const {
    std::vector<std::string> remarks;
    for (const auto& [name, value] : best_) remarks.push_back(remark_on(name, value));
    return fmt::format("# melflow tune: {}\n", summary()) +
           tuned_text(arguments_.trial.plan, best_, remarks);
  }
  [[nodiscard]] Json json() const {
    Json out{{"is_faster", is_faster()},
             {"set", settings_json(is_faster() ? best_ : Settings{})},
             {"tried", Json::array()},
             {"not_tried", Json::array()},
             {"times_as_fast", gain_json(gain_)},
             {"files_per_second", {{"without", last_.without}, {"with", last_.with}}}};
    for (const Hint& hint : hints_not_tried())
      out["not_tried"].push_back({{"set", settings_json(hint.sets)}, {"likely", hint.likely}});
    for (const Tried& t : tried_)
      out["tried"].push_back({{"set", settings_json(t.changes)},
                              {"times_as_fast", gain_json(t.gain)},
                              {"pairs", t.pairs},
                              {"kept", t.is_kept}});
    return out;
  }

 private:
  [[nodiscard]] double left() const {
    return arguments_.budget - std::chrono::duration<double>(Clock::now() - began_).count();
  }
  [[nodiscard]] std::vector<Hint> hints_not_tried() const {
    std::vector<Hint> out;
    std::copy_if(limits_.hints.begin(), limits_.hints.end(), std::back_inserter(out),
                 [this](const Hint& hint) { return !search_.may_change(hint.sets); });
    return out;
  }
  static Json gain_json(const Gain& g) {
    return {{"middle", g.middle}, {"low", g.low}, {"high", g.high}};
  }

  // Tries changes; returns the new limits where they are faster than the best so far.
  std::optional<Limits> try_out(const Settings& changes) {
    try {
      trials_.check(changes);
    } catch (const ConfigError&) {
      return std::nullopt;  // conflicts with other options
    }
    Pairs pairs;
    RunReport report;
    while (pairs.with.size() < kFirstPairs) {
      report = trials_.add_pair(pairs, best_, changes);
      if (pairs.with.front() < kHopeless * pairs.without.front()) break;
    }
    const Gain gain = gain_of(pairs, arguments_.seed);
    const bool is_kept = pairs.with.size() == kFirstPairs && gain.is_real();
    tried_.push_back({changes, gain, pairs.with.size(), is_kept});
    if (!arguments_.trial.no_progress)
      say(stderr, "{}: {}{}\n", settings_text(changes), gain_text(gain), is_kept ? ", kept" : "");
    if (!is_kept) return std::nullopt;
    best_ = changes;
    return find_limits(report);
  }

  // Describes the trial that chose this value.
  [[nodiscard]] std::string remark_on(const std::string& name, const std::string& value) const {
    std::string was;
    for (const TunableOption& o : options_)
      if (o.name == name) was = o.present;
    for (const Tried& t : tried_)
      if (t.is_kept &&
          std::find(t.changes.begin(), t.changes.end(), std::pair(name, value)) != t.changes.end())
        return fmt::format("tune: was {}; tried together, then the next: {}", was,
                           gain_text(t.gain));
    return "tune: was " + was;
  }

  const TuneArguments& arguments_;
  const Clock::time_point began_;
  const std::vector<TunableOption> options_;
  const Trials& trials_;
  TuningSearch search_;
  Settings best_;
  Limits limits_;  // of the fastest run so far
  std::vector<Tried> tried_;
  Pairs last_;
  Gain gain_;
};

int tune(const TuneArguments& arguments) {
  std::optional<WrittenFile> file;
  if (!arguments.output.empty()) {
    try {
      file.emplace(arguments.output, "tune: was",
                   std::vector{find_pipeline(arguments.trial.plan.file)});
    } catch (const RunError& e) {
      throw RunError(fmt::format("-o: {}", e.what()));
    }
  }
  return with_trials(arguments.trial, [&](const Trials& trials) {
    Tuning tuning(arguments, trials);
    if (file) file->keep_off(tuning.outputs());
    tuning.run();
    if (tuning.is_faster() && file) file->write(tuning.yaml());
    if (const std::string text = tuning.not_tried(); !text.empty() && !arguments.trial.json)
      say(stderr, "{}\n", text);
    if (arguments.trial.json)
      put(stdout, json_text(tuning.json()));
    else if (!tuning.is_faster() || file)
      put(stdout, tuning.summary() + (tuning.is_faster() ? "\n" : "; nothing is written\n"));
    else
      put(stdout, tuning.yaml());
    return kDone;
  });
}

}  // namespace

Action add_tune(CLI::App& verb) {
  auto arguments = std::make_shared<TuneArguments>();
  arguments->trial.plan.add_to(verb);
  add_time(verb, "--budget", arguments->budget,
           "approximate time for all trials together (default 60s)");
  verb.add_option("--seed", arguments->seed, "the order in which options are tried")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("-o,--output", arguments->output,
                  "writes the pipeline with the changed values, and the reasons as comments; not "
                  "given: prints it")
      ->type_name("FILE.yaml");
  arguments->trial.add_to(verb);
  verb.footer(
      "Only options that change no row are tried: workers, concurrency, queues, batches, reading,\n"
      "the level of compression.\n"
      "Nothing is changed where the pipeline is as fast as all that was tried.\n"
      "\n"
      "Example:\n"
      "  DATA=clips OUT=f.h5 melflow tune mine.yaml --budget 60s -o tuned.yaml");
  return [arguments] { return tune(*arguments); };
}

}  // namespace melflow
