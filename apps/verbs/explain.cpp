// melflow explain: makes a trial run, finds its limit, and verifies the best hint.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/profile/figures.h"
#include "apps/profile/limits.h"
#include "apps/profile/verification.h"
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

// Runs alternate, so that changes on the machine affect both sides equally.
Verification verify_by(const Trials& trials, const Hint& hint, double before) {
  std::vector<double> without, with;
  for (int i = 0; i < kPairs; ++i) {
    without.push_back(Trials::rate(trials.run()));
    with.push_back(Trials::rate(trials.run(hint.sets)));
  }
  return verify(hint, before, without, with);
}

std::string trial_text(const Limits& l, const RunReport& r) {
  if (!l.is_known)
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
         "\nat most, of each (files/s while the stages work; how much of it the run used):\n" +
         ceilings_text(l, r);
}

const char* outcome_text(const Verification& v) {
  if (v.agrees)
    return v.is_shown ? "as predicted" : "not shown, since the runs differ by more than the gain";
  return v.reached > 1 ? "more than predicted" : "less than predicted";
}

std::string verification_text(const Verification& v) {
  return fmt::format(
      "\nverified: {}, {} runs without and {} with it, in turn:\n"
      "  predicted {:.2f} times as fast ({:.2f} to {:.2f}), measured {:.2f} times ({:.2f} to "
      "{:.2f}), {} of the gain: {}\n",
      sets_text(v.hint), v.without.size(), v.with.size(), v.predicted, v.predicted_low,
      v.predicted_high, v.measured, v.least, v.greatest,
      v.reached < 0 ? "none" : fmt::format("{:.0f}%", 100 * v.reached), outcome_text(v));
}

nlohmann::ordered_json verification_json(const Verification& v) {
  return {{"set", hint_json(v.hint)["set"]},
          {"shown", v.is_shown},
          {"predicted",
           {{"likely", v.predicted}, {"low", v.predicted_low}, {"high", v.predicted_high}}},
          {"measured", {{"middle", v.measured}, {"least", v.least}, {"greatest", v.greatest}}},
          {"files_per_second", {{"without", v.without}, {"with", v.with}}},
          {"reached", v.reached},
          {"agrees", v.agrees}};
}

int explain(const ExplainArguments& arguments) {
  try {
    const Trials trials(arguments.trial);
    trials.show_warnings({{}});
    const RunReport report = trials.run();
    const Limits limits = find_limits(report);
    if (!arguments.trial.json) put(stdout, trial_text(limits, report));
    std::optional<Verification> verification;
    if (arguments.verify && !limits.hints.empty())
      verification = verify_by(trials, limits.hints.front(), limits.files_per_second);
    if (arguments.trial.json) {
      nlohmann::ordered_json out{{"files", run_figures(report).files},
                                 {"seconds", report.wall_seconds},
                                 {"limit", limits_json(limits)}};
      if (arguments.verify)
        out["verification"] =
            verification ? verification_json(*verification) : nlohmann::ordered_json();
      put(stdout, json_text(out));
    } else if (verification) {
      put(stdout, verification_text(*verification));
    } else if (arguments.verify) {
      put(stdout, limits.reuse.source.empty()
                      ? "\nthere is no option to change, so there is nothing to verify\n"
                      : "\nnothing is verified: a cache is filled by one run and helps those after "
                        "it\n");
    }
    return limits.is_known ? kDone : kRunFailed;
  } catch (const Trials::Interrupted&) {
    complain("stopped; what the trial wrote is removed");
    return kStopped;
  }
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
