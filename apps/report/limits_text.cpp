#include "apps/report/limits_text.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/profile/figures.h"
#include "apps/report/format.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

std::string percent(double share) { return fmt::format("{:.0f}%", 100 * share); }

// The items at once in a node, or the calls where its calls of Python are not made by its threads.
std::string at_once_text(const Demands::Stage& s) {
  return fmt::format("{}{} at once", s.slots,
                     !s.has_calls   ? ""
                     : s.slots == 1 ? " call"
                                    : " calls");
}

// Names the last file that took longest, where it explains the wait.
std::string last_file_text(const Limits& l, const RunReport& r) {
  if (r.slowest.empty() || r.slowest.front().visit.seconds < 0.5 * l.share * r.graph_seconds)
    return "";
  const SlowFile& last = r.slowest.front();
  return fmt::format("; {} was in {} for {}", excerpt(last.name), one_line(last.stage),
                     seconds_text(last.visit.seconds));
}

// The text for each cause as the limit of a run, and for a resource as one with a ceiling.
struct CauseText {
  Cause cause;
  const char *limit, *ceiling = "";
};
constexpr CauseText kTexts[] = {
    {Cause::cores, "the processor: {share} of what {cores} can do; {heaviest}", "{cores}"},
    {Cause::disk, "the disk: {node} waited for it {share} of the time, at {disk} MB/s",
     "the disk, as fast as it was for {node}"},
    {Cause::lock, "Python's lock (GIL): functions hold it {share} of the time, most of all {node}",
     "Python's lock (GIL), held most of all by {node}"},
    {Cause::workers, "the workers: {at_once} of them, in stages {share} of the time, {where}",
     "{workers}"},
    {Cause::slots, "{node}: {at_once}, at work {share} of the time", "{node}, {at_once}"},
    {Cause::memory, "memory.host ({budget}): files waited for it {share} of the time"},
    {Cause::queue, "the queue before {node}: alternately full and empty, {share} of the time"},
    {Cause::few_files, "too few files: {files}, where more could be worked on at once"},
    {Cause::ending,
     "the end of the run: {node} had nothing more to do {share} of the time while the last files "
     "were finished{last}"},
    {Cause::beginning,
     "the beginning: {share} of the time passed before the first rows were there"},
    {Cause::listing, "finding the files and opening the output: {share} of the time"},
    {Cause::loading, "loading the audio first: {share} of the time"},
    {Cause::closing, "closing and checking the output: {share} of the time"},
    {Cause::program,
     "the program that takes the batches of {node}: they waited for it {share} of the time"},
    {Cause::uneven,
     "nothing for long: stages waited for each other; most used was {nearest} of the time"},
};

std::string filled_in(const char* CauseText::*text, const Limit& of, const Limits& l,
                      const RunReport& r) {
  const auto at = std::find_if(std::begin(kTexts), std::end(kTexts),
                               [&](const CauseText& t) { return t.cause == of.cause; });
  const auto nearest =
      std::max_element(l.ceilings.begin(), l.ceilings.end(),
                       [](const Ceiling& a, const Ceiling& b) { return a.share < b.share; });
  const std::string cores = plural(static_cast<std::size_t>(r.cores), "core");
  return fmt::format(
      fmt::runtime(at->*text), fmt::arg("node", one_line(of.node)),
      fmt::arg("share", percent(std::min(1.0, of.share))), fmt::arg("cores", cores),
      fmt::arg("workers", plural(static_cast<std::size_t>(r.workers), "worker")),
      fmt::arg("heaviest", fmt::format("{} of the work is {}", percent(l.heaviest_share),
                                       one_line(l.heaviest))),
      fmt::arg("disk", megabytes_text(run_figures(r).disk_read_per_second)),
      fmt::arg("where",
               r.workers < r.cores ? "on " + cores : "where they wait more than they compute"),
      fmt::arg("at_once", of.cause == Cause::slots
                              ? at_once_text(stage_of(l.demands, of.node))
                              : count_text(static_cast<std::size_t>(r.workers))),
      fmt::arg("budget", mebibytes_text(r.memory_budget)),
      fmt::arg("files", count_text(run_figures(r).files)), fmt::arg("last", last_file_text(l, r)),
      fmt::arg("nearest", fmt::format("{}, {}",
                                      nearest->node.empty() ? to_text(nearest->cause)
                                                            : one_line(nearest->node),
                                      percent(nearest->share))));
}

// Names options that would speed up the heaviest stage by changing rows, instead of a remedy.
std::string nothing_helps(const Limits& l, const RunReport& r) {
  for (const StageReport& s : r.stages)
    if (const Value* lock = summary_of(s, "lock");
        l.cause == Cause::lock && s.name == l.node && lock->find("importable")->text() == "false")
      return fmt::format("{}.processes, of a function that can be imported (MODULE:NAME)",
                         one_line(s.name));
  std::string out = "no option; only less work, or a faster machine";
  for (const StageReport& s : r.stages)
    if (s.name == l.heaviest && s.stage == "resample")
      out += fmt::format(" ({}.quality would change the rows)", one_line(s.name));
  return out;
}

std::string reuse_text(const Saving& reuse) {
  const std::string& feed = reuse.sets.front().first;
  std::vector<std::string> stages;
  for (const std::string& name : reuse.stages) stages.push_back(one_line(name));
  return fmt::format(
      "{} with {}.cache_path: FOLDER → later runs of the same files save {}, {} of {}",
      sets_text(reuse.sets), feed.substr(0, feed.rfind('.')),
      stages.empty() ? "loading it" : fmt::format("{}", fmt::join(stages, " and ")),
      percent(reuse.share), stages.empty() ? "the time" : "the work");
}

}  // namespace

std::string sets_text(const Settings& settings) {
  std::string sets;
  for (const auto& [option, value] : settings)
    sets += fmt::format("{}{}: {}", sets.empty() ? "" : " with ", option, value);
  return sets;
}

std::string hint_text(const Hint& hint, double files_per_second) {
  constexpr double kSameSize = 0.001;
  return fmt::format("{} → about {} files/s ({} to {}), now {}{}", sets_text(hint.sets),
                     rate_text(hint.likely), rate_text(hint.low), rate_text(hint.high),
                     rate_text(files_per_second),
                     std::abs(hint.output_size - 1) < kSameSize
                         ? ""
                         : fmt::format("; the same rows in a file {:.1f}% {}",
                                       100 * std::abs(hint.output_size - 1),
                                       hint.output_size > 1 ? "larger" : "smaller"));
}

std::string limits_text(const Limits& l, const RunReport& report) {
  if (!l.is_known()) return {};
  std::string out = "limited by: " + filled_in(&CauseText::limit, l, l, report) + "\n";
  if (l.taken_share >= Limits::kDisturbed)
    out += fmt::format(
        "            other programs had the cores for {} of the time in which this one was ready\n",
        percent(l.taken_share));
  std::vector<std::string> remedies;
  for (const Hint& hint : l.hints) remedies.push_back(hint_text(hint, l.files_per_second));
  if (l.reuse) remedies.push_back(reuse_text(*l.reuse));
  if (l.sync)
    remedies.push_back(
        fmt::format("{} → saves {} of the time; where the machine fails soon after the run, the "
                    "output may then be lost",
                    sets_text(l.sync->sets), percent(l.sync->share)));
  if (remedies.empty() && l.nothing_to_gain()) remedies.emplace_back(nothing_helps(l, report));
  for (std::size_t i = 0; i < remedies.size(); ++i)
    out += (i == 0 ? "would help: " : "        or: ") + remedies[i] + "\n";
  return out;
}

std::string ceilings_text(const Limits& l, const RunReport& report) {
  std::string out;
  for (const Ceiling& c : l.ceilings)
    out += fmt::format("{:>12} files/s  {:>4} used  {}\n", rate_text(c.files_per_second),
                       percent(c.share), filled_in(&CauseText::ceiling, c, l, report));
  return out;
}

nlohmann::ordered_json settings_json(const Settings& settings) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const auto& [option, value] : settings) out[option] = value;
  return out;
}

nlohmann::ordered_json limits_json(const Limits& l) {
  using Json = nlohmann::ordered_json;
  if (!l.is_known()) return nullptr;
  const auto node = [](const std::string& name) { return name.empty() ? Json() : Json(name); };
  Json out{{"cause", to_text(l.cause)},
           {"node", node(l.node)},
           {"share", l.share},
           {"files_per_second", l.files_per_second},
           {"taken_by_others", l.taken_share},
           {"nothing_to_gain", l.nothing_to_gain()},
           {"ceilings", Json::array()},
           {"hints", Json::array()},
           {"reuse", nullptr},
           {"sync", nullptr}};
  for (const Ceiling& c : l.ceilings)
    out["ceilings"].push_back({{"resource", to_text(c.cause)},
                               {"node", node(c.node)},
                               {"files_per_second", c.files_per_second},
                               {"used", c.share}});
  for (const Hint& h : l.hints)
    out["hints"].push_back({{"set", settings_json(h.sets)},
                            {"likely", h.likely},
                            {"low", h.low},
                            {"high", h.high},
                            {"output_size", h.output_size}});
  if (l.reuse)
    out["reuse"] = {{"set", settings_json(l.reuse->sets)},
                    {"stages", l.reuse->stages},
                    {"share", l.reuse->share}};
  if (l.sync) out["sync"] = {{"set", settings_json(l.sync->sets)}, {"share", l.sync->share}};
  return out;
}

}  // namespace melflow
