// melflow explain: makes a trial run, finds its limit, and verifies the best hint.
#include <CLI/CLI.hpp>
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
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/trials.h"
#include "apps/verbs/verbs.h"

namespace melflow {
namespace {

constexpr int kPairs = 3;

struct ExplainArguments {
  TrialArguments trial{.seconds = 30};
  bool verify = false;
};

// The best hint, tried.
struct Verified {
  const Hint& hint;
  double before;  // files/s of the trial run that gave the hint
  Pairs pairs = {};
  Gain gain = {};
  double reached = 0;

  [[nodiscard]] bool is_shown() const { return gain.low >= 1; }  // no pair was slower
};

Verified verify(const Trials& trials, const Limits& limits) {
  Verified out{limits.hints.front(), limits.files_per_second};
  for (int i = 0; i < kPairs; ++i) trials.add_pair(out.pairs, {}, out.hint.sets);
  out.gain = gain_of(out.pairs);
  out.reached = reached(out.gain, out.hint, out.before);
  return out;
}

std::string trial_text(const Limits& l, const RunReport& r) {
  if (!l.is_known())
    return "no result: no file was processed; are there any, and is there time enough "
           "for one (--seconds)?\n";
  std::string out = fmt::format(
      "{}: {} in {}, {} files/s while the stages worked ({})\n",
      r.ending == Ending::stopped ? "trial of the first files" : "trial",
      plural(run_figures(r).files, "file"), seconds_text(r.wall_seconds),
      rate_text(l.files_per_second),
      seconds_text(r.graph_seconds + (l.cause == Cause::loading ? r.filling_seconds : 0)));
  out += limits_text(l, r);
  return out +
         "\nthe most that each allows (files/s while the stages work), and how much of it the run "
         "used:\n" +
         ceilings_text(l, r);
}

const char* outcome_text(const Verified& v) {
  if (!is_as_predicted(v.reached))
    return v.reached > 1 ? "more than predicted" : "less than predicted";
  return v.is_shown() ? "as predicted" : "not shown, since the runs differ by more than the gain";
}

std::string verified_text(const Verified& v) {
  return fmt::format(
      "\nverified: {}, {} runs without and {} with it, in turn:\n"
      "  predicted {:.2f} times as fast ({:.2f} to {:.2f}), measured {:.2f} times ({:.2f} to "
      "{:.2f}), {} of the gain: {}\n",
      sets_text(v.hint.sets), kPairs, kPairs, v.hint.likely / v.before, v.hint.low / v.before,
      v.hint.high / v.before, v.gain.middle, v.gain.low, v.gain.high,
      v.reached < 0 ? "none" : fmt::format("{:.0f}%", 100 * v.reached), outcome_text(v));
}

nlohmann::ordered_json verified_json(const Verified& v) {
  return {
      {"set", settings_json(v.hint.sets)},
      {"shown", v.is_shown()},
      {"predicted",
       {{"likely", v.hint.likely / v.before},
        {"low", v.hint.low / v.before},
        {"high", v.hint.high / v.before}}},
      {"measured", {{"middle", v.gain.middle}, {"least", v.gain.low}, {"greatest", v.gain.high}}},
      {"files_per_second", {{"without", v.pairs.without}, {"with", v.pairs.with}}},
      {"reached", v.reached},
      {"agrees", is_as_predicted(v.reached)}};
}

int explain(const ExplainArguments& arguments) {
  return with_trials(arguments.trial, [&](const Trials& trials) {
    trials.show_warnings({{}});
    const RunReport report = trials.run();
    const Limits limits = find_limits(report);
    if (!arguments.trial.json) put(stdout, trial_text(limits, report));
    std::optional<Verified> verified;
    if (arguments.verify && !limits.hints.empty()) verified.emplace(verify(trials, limits));
    if (arguments.trial.json) {
      nlohmann::ordered_json out{{"files", run_figures(report).files},
                                 {"seconds", report.wall_seconds},
                                 {"limit", limits_json(limits)}};
      if (arguments.verify)
        out["verification"] = verified ? verified_json(*verified) : nlohmann::ordered_json();
      put(stdout, json_text(out));
    } else if (verified) {
      put(stdout, verified_text(*verified));
    } else if (arguments.verify) {
      put(stdout, limits.reuse
                      ? "\nnothing is verified: a cache is filled by one run and helps those after "
                        "it\n"
                      : "\nthere is no option to change, so there is nothing to verify\n");
    }
    return limits.is_known() ? kDone : kRunFailed;
  });
}

}  // namespace

Action add_explain(CLI::App& verb) {
  auto arguments = std::make_shared<ExplainArguments>();
  arguments->trial.plan.add_to(verb);
  verb.add_flag("--verify", arguments->verify,
                "tries the first hint and measures its effect: three runs without it and three "
                "with it, in turn");
  arguments->trial.add_to(verb);
  verb.footer(
      "The pipeline runs as it would with `melflow run`, but writes into a folder beside its "
      "output,\n"
      "which is removed at the end. docs/profiling.md explains the words and what to do.\n"
      "\n"
      "Example:\n"
      "  DATA=clips OUT=features.h5 melflow explain speech_16k_80mel --verify");
  return [arguments] { return explain(*arguments); };
}

}  // namespace melflow
