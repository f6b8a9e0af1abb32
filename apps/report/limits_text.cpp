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

std::string cores_text(const Limits& l, const RunReport& r) {
  return fmt::format("the processor: {} of what {} can do; {} of the work is {}",
                     percent(std::min(1.0, l.share)),
                     plural(static_cast<std::size_t>(r.cores), "core"), percent(l.heaviest_share),
                     one_line(l.heaviest));
}

std::string workers_text(const Limits& l, const RunReport& r) {
  const std::string text =
      fmt::format("the workers: {} of them, in stages {} of the time",
                  count_text(static_cast<std::size_t>(r.workers)), percent(std::min(1.0, l.share)));
  return r.workers < r.cores
             ? text + fmt::format(", on {}", plural(static_cast<std::size_t>(r.cores), "core"))
             : text + ", where they wait more than they compute";
}

// The items at once in a node, or the calls where its calls of Python are not made by its threads.
std::string at_once_text(const std::string& node, const RunReport& r) {
  for (const Demands::Stage& s : demands_of(r).stages)
    if (s.name == node)
      return fmt::format("{}{} at once", s.slots,
                         !s.has_calls   ? ""
                         : s.slots == 1 ? " call"
                                        : " calls");
  return "1 at once";
}

std::string slots_text(const Limits& l, const RunReport& r) {
  return fmt::format("{}: {}, at work {} of the time", one_line(l.node), at_once_text(l.node, r),
                     percent(l.share));
}

std::string few_files_text(const RunReport& r) {
  return fmt::format("too few files: {}, where more could be worked on at once",
                     count_text(run_figures(r).files));
}

// Names the last file that took longest, where it explains the wait.
std::string ending_text(const Limits& l, const RunReport& r) {
  std::string out = fmt::format(
      "the end of the run: {} had nothing more to do {} of the time while the last files were "
      "finished",
      one_line(l.node), percent(l.share));
  if (!r.slowest.empty() && r.slowest.front().visit.seconds >= 0.5 * l.share * r.graph_seconds)
    out += fmt::format("; {} was in {} for {}", excerpt(r.slowest.front().name),
                       one_line(r.slowest.front().stage),
                       seconds_text(r.slowest.front().visit.seconds));
  return out;
}

std::string nearest_text(const Limits& l) {
  const auto nearest =
      std::max_element(l.ceilings.begin(), l.ceilings.end(),
                       [](const Ceiling& a, const Ceiling& b) { return a.used < b.used; });
  return fmt::format(
      "nothing for long: stages waited for each other; most used was {}, {} of the time",
      nearest->node.empty() ? std::string(to_text(nearest->cause)) : one_line(nearest->node),
      percent(nearest->used));
}

std::string cause_text(const Limits& l, const RunReport& r) {
  switch (l.cause) {
    case Cause::cores:
      return cores_text(l, r);
    case Cause::disk:
      return fmt::format("the disk: {} waited for it {} of the time, at {} MB/s", one_line(l.node),
                         percent(l.share), megabytes_text(run_figures(r).disk_read_per_second));
    case Cause::lock:
      return fmt::format("Python's lock (GIL): functions hold it {} of the time, most of all {}",
                         percent(l.share), one_line(l.node));
    case Cause::workers:
      return workers_text(l, r);
    case Cause::slots:
      return slots_text(l, r);
    case Cause::memory:
      return fmt::format("memory.host ({}): files waited for it {} of the time",
                         mebibytes_text(r.memory_budget), percent(l.share));
    case Cause::queue:
      return fmt::format("the queue before {}: alternately full and empty, {} of the time",
                         one_line(l.node), percent(l.share));
    case Cause::few_files:
      return few_files_text(r);
    case Cause::ending:
      return ending_text(l, r);
    case Cause::beginning:
      return fmt::format("the beginning: {} of the time passed before the first rows were there",
                         percent(l.share));
    case Cause::listing:
      return fmt::format("finding the files and opening the output: {} of the time",
                         percent(l.share));
    case Cause::loading:
      return fmt::format("loading the audio first: {} of the time", percent(l.share));
    case Cause::closing:
      return fmt::format("closing and checking the output: {} of the time", percent(l.share));
    case Cause::program:
      return fmt::format(
          "the program that takes the batches of {}: they waited for it {} of the time",
          one_line(l.node), percent(l.share));
    case Cause::uneven:
      return nearest_text(l);
  }
  return "";
}

std::string ceiling_name(const Ceiling& c, const RunReport& r) {
  switch (c.cause) {
    case Cause::cores:
      return plural(static_cast<std::size_t>(r.cores), "core");
    case Cause::workers:
      return plural(static_cast<std::size_t>(r.workers), "worker");
    case Cause::disk:
      return "the disk, as fast as it was for " + one_line(c.node);
    case Cause::lock:
      return "Python's lock (GIL), held most of all by " + one_line(c.node);
    default:
      return fmt::format("{}, {}", one_line(c.node), at_once_text(c.node, r));
  }
}

// Names options that would speed up the heaviest stage by changing rows, instead of a remedy.
std::string nothing_helps(const Limits& l, const RunReport& r) {
  std::string out = "no option; only less work, or a faster machine";
  const auto heaviest = std::find_if(r.stages.begin(), r.stages.end(),
                                     [&](const StageReport& s) { return s.name == l.heaviest; });
  if (heaviest != r.stages.end() && heaviest->stage == "resample")
    out += fmt::format(" ({}.quality would change the rows)", one_line(heaviest->name));
  for (const StageReport& s : r.stages)
    for (const auto& [name, lock] : s.summary)
      if (l.cause == Cause::lock && s.name == l.node && name == "lock" &&
          lock.find("importable")->text() == "false")
        out = fmt::format("{}.processes, of a function that can be imported (MODULE:NAME)",
                          one_line(s.name));
  return out;
}

std::string reuse_text(const Reuse& reuse) {
  std::vector<std::string> stages;
  for (const std::string& name : reuse.stages) stages.push_back(one_line(name));
  const std::string saved =
      stages.empty()
          ? fmt::format("loading it, {} of the time", percent(reuse.share))
          : fmt::format("{}, {} of the work", fmt::join(stages, " and "), percent(reuse.share));
  return fmt::format(
      "{0}.feed: cache with {0}.cache_path: FOLDER → later runs of the same files save {1}",
      one_line(reuse.source), saved);
}

}  // namespace

std::string sets_text(const Hint& hint) {
  std::string sets;
  for (const auto& [option, value] : hint.sets)
    sets += fmt::format("{}{}: {}", sets.empty() ? "" : " with ", option, value);
  return sets;
}

std::string hint_text(const Hint& hint, double files_per_second) {
  constexpr double kSameSize = 0.001;
  return fmt::format("{} → about {} files/s ({} to {}), now {}{}", sets_text(hint),
                     rate_text(hint.likely), rate_text(hint.low), rate_text(hint.high),
                     rate_text(files_per_second),
                     std::abs(hint.output_size - 1) < kSameSize
                         ? ""
                         : fmt::format("; the same rows in a file {:.1f}% {}",
                                       100 * std::abs(hint.output_size - 1),
                                       hint.output_size > 1 ? "larger" : "smaller"));
}

std::string limits_text(const Limits& l, const RunReport& report) {
  if (!l.is_known) return {};
  std::string out = "limited by: " + cause_text(l, report) + "\n";
  if (l.taken_share >= Limits::kDisturbed)
    out += fmt::format(
        "            other programs had the cores for {} of the time in which this one was ready\n",
        percent(l.taken_share));
  std::vector<std::string> remedies;
  for (const Hint& hint : l.hints) remedies.push_back(hint_text(hint, l.files_per_second));
  if (!l.reuse.source.empty()) remedies.push_back(reuse_text(l.reuse));
  if (!l.sync.sink.empty())
    remedies.push_back(fmt::format(
        "{}.sync: false → saves {} of the time; where the machine fails soon after the run, the "
        "output may then be lost",
        one_line(l.sync.sink), percent(l.sync.share)));
  if (remedies.empty() && l.nothing_to_gain()) remedies.emplace_back(nothing_helps(l, report));
  for (std::size_t i = 0; i < remedies.size(); ++i)
    out += (i == 0 ? "would help: " : "        or: ") + remedies[i] + "\n";
  return out;
}

std::string ceilings_text(const Limits& l, const RunReport& report) {
  std::string out;
  for (const Ceiling& c : l.ceilings)
    out += fmt::format("{:>12} files/s  {:>4} used  {}\n", rate_text(c.files_per_second),
                       percent(c.used), ceiling_name(c, report));
  return out;
}

nlohmann::ordered_json hint_json(const Hint& h) {
  nlohmann::ordered_json sets = nlohmann::ordered_json::object();
  for (const auto& [option, value] : h.sets) sets[option] = value;
  return {{"set", std::move(sets)},
          {"likely", h.likely},
          {"low", h.low},
          {"high", h.high},
          {"output_size", h.output_size}};
}

nlohmann::ordered_json limits_json(const Limits& l) {
  using Json = nlohmann::ordered_json;
  if (!l.is_known) return nullptr;
  Json out{{"cause", to_text(l.cause)},
           {"node", l.node.empty() ? Json() : Json(l.node)},
           {"share", l.share},
           {"files_per_second", l.files_per_second},
           {"taken_by_others", l.taken_share},
           {"nothing_to_gain", l.nothing_to_gain()}};
  out["ceilings"] = Json::array();
  for (const Ceiling& c : l.ceilings)
    out["ceilings"].push_back({{"resource", to_text(c.cause)},
                               {"node", c.node.empty() ? Json() : Json(c.node)},
                               {"files_per_second", c.files_per_second},
                               {"used", c.used}});
  out["hints"] = Json::array();
  for (const Hint& h : l.hints) out["hints"].push_back(hint_json(h));
  out["reuse"] = l.reuse.source.empty() ? Json()
                                        : Json{{"set", {{l.reuse.source + ".feed", "cache"}}},
                                               {"stages", l.reuse.stages},
                                               {"share", l.reuse.share}};
  out["sync"] = l.sync.sink.empty()
                    ? Json()
                    : Json{{"set", {{l.sync.sink + ".sync", "false"}}}, {"share", l.sync.share}};
  return out;
}

}  // namespace melflow
