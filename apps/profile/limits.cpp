#include "apps/profile/limits.h"

#include <algorithm>

#include "apps/profile/figures.h"
#include "apps/profile/remedies.h"
#include "pipeline/options/option_type.h"

namespace melflow {
namespace {

constexpr double kUsedUp = 0.9;       // use of a resource from which on it is a limit
constexpr double kLockUsedUp = 0.6;   // nobody holds a lock while it passes to another thread
constexpr double kLossNamed = 0.1;    // of the time; a smaller loss is not named
constexpr double kMostOutside = 0.5;  // of the whole time, spent with no stage at work
// Share of the whole time spent on loading audio before rows are computed, which a stream does
// concurrently.
constexpr double kMostLoading = 0.25;

struct Loss {
  Cause cause = Cause::uneven;
  std::string node;
  double share = 0;
};

// Finds the longest part of the run in which no stage was at work.
Loss lost_outside(const RunReport& r) {
  Loss out;
  if (r.wall_seconds <= 0) return out;
  for (const auto& [cause, seconds] :
       {std::pair(Cause::listing, r.start_seconds), std::pair(Cause::loading, r.filling_seconds),
        std::pair(Cause::closing, r.finish_seconds)})
    if (seconds / r.wall_seconds > out.share) out = {cause, "", seconds / r.wall_seconds};
  return out;
}

// The loss because finished batches waited for the program that takes them.
Loss lost_to_program(const RunReport& r) {
  Loss out{Cause::program, "", 0};
  for (const StageReport& s : r.stages)
    for (const auto& [name, value] : s.summary) {
      double seconds = 0;
      if (name == "waiting_for_program" && detail::parse_number(value, seconds).empty() &&
          r.graph_seconds > 0)
        out = {Cause::program, s.name, std::min(1.0, seconds / r.graph_seconds)};
    }
  return out;
}

// The number of the stage with the most time in its slots.
std::size_t busiest(const RunReport& r, const Demands& demands) {
  const auto busy = [&](std::size_t i) {
    return demands.stages[i].has_calls
               ? demands.stages[i].busy * static_cast<double>(run_figures(r).files)
               : r.stages[i].time.busy;
  };
  std::size_t out = 0;
  for (std::size_t i = 1; i < r.stages.size(); ++i)
    if (busy(i) > busy(out)) out = i;
  return out;
}

double share_of(double seconds, const StageReport& s) {
  return s.time.total() > 0 ? seconds / s.time.total() : 0;
}

auto stage_named(const RunReport& r, const std::string& name) {
  return std::find_if(r.stages.begin(), r.stages.end(),
                      [&](const StageReport& s) { return s.name == name; });
}

// Finds a node that is given fewer slots than there are workers while the node before it is
// blocked. It need not be at work all the time: a worker that leaves it goes on with what it has
// made, and beside other programs a worker may come late to what waits for it. So a queue before
// one slot is full because of that slot, even if it is empty in turn.
Loss lost_to_few_slots(const RunReport& r, const Demands& demands) {
  constexpr double kHeld = 0.5;  // of the time at work or waiting for a worker, at least
  Loss out{Cause::slots, "", 0};
  for (std::size_t i = 0; i < r.stages.size(); ++i) {
    const StageReport& s = r.stages[i];
    const Demands::Stage& d = demands.stages[i];
    const int most = d.option.most > 0 ? std::min(d.option.most, r.workers) : r.workers;
    if (!d.option.is_settable || !d.on_workers || d.has_calls ||
        d.slots >= std::min(most, demands.working_slots(most)))
      continue;
    const bool is_held = share_of(s.time.busy + s.time.waiting_core, s) >= kHeld;
    for (const EdgeReport& e : r.edges) {
      const auto from = stage_named(r, e.from);
      if (e.to != s.name || from == r.stages.end()) continue;
      double share = share_of(from->time.blocked_output, *from);
      if (!is_held) share = std::min(share, share_of(s.time.waiting_input, s));
      if (d.slots > 1 && (!is_held || e.mean_depth < 0.5 * e.capacity)) continue;
      if (share > out.share) out = {Cause::slots, s.name, share};
    }
  }
  return out;
}

// Finds the queue before a node that waits for input while the node before it is blocked.
Loss lost_by_queues(const RunReport& r) {
  Loss out{Cause::queue, "", 0};
  for (const EdgeReport& e : r.edges) {
    const auto from = stage_named(r, e.from), to = stage_named(r, e.to);
    if (from == r.stages.end() || to == r.stages.end()) continue;
    const double share =
        std::min(share_of(from->time.blocked_output, *from), share_of(to->time.waiting_input, *to));
    if (share > out.share) out = {Cause::queue, e.to, share};
  }
  return out;
}

// Waiting for memory costs only the time in which every stage after the source lacked work: a
// source that is ahead of the stages waits, too.
double lost_by_memory(const RunReport& r) {
  double share = std::min(1.0, r.memory_wait_seconds / r.graph_seconds);
  for (const StageReport& s : r.stages) {
    const bool is_fed = std::any_of(r.edges.begin(), r.edges.end(),
                                    [&](const EdgeReport& e) { return e.to == s.name; });
    const double idle = s.time.waiting_input + s.time.blocked_output + s.time.idle_after_end;
    if (is_fed) share = std::min(share, share_of(idle, s));
  }
  return share;
}

// The share of slots that were idle while fewer than `slots` of the last files were in flight.
double lost_at_the_end(const RunReport& r, int slots) {
  double lost = 0;  // [s x slots]
  const std::size_t n = r.last_closings.size();
  for (std::size_t i = 1; i < n; ++i) {
    const auto left = static_cast<int>(n - i);
    lost += std::max(0, slots - left) * (r.last_closings[i] - r.last_closings[i - 1]);
  }
  return lost / slots / r.graph_seconds;
}

// Where no resource was exhausted, finds the largest loss of time.
Loss lost_inside(const RunReport& r, const Demands& demands, double unused) {
  const std::size_t at = busiest(r, demands);
  const StageReport& most = r.stages[at];
  const int all = demands.stages[at].slots;
  const int slots = demands.stages[at].on_workers ? demands.working_slots(all) : all;
  const auto files = static_cast<double>(run_figures(r).files);
  if (files < slots) return {Cause::few_files, "", 1 - files / slots};
  const double at_the_end = std::min(unused, lost_at_the_end(r, slots));
  std::vector<Loss> losses{
      {Cause::memory, "", lost_by_memory(r)},
      {Cause::beginning, "",
       (r.first_row_seconds - r.start_seconds - r.filling_seconds) / r.graph_seconds},
      {Cause::ending, most.name, std::max(at_the_end, share_of(most.time.idle_after_end, most))}};
  // Nodes that wait for memory count as blocked, too, so queues are judged only without such waits.
  if (r.memory_wait_seconds < kLossNamed * r.graph_seconds) {
    losses.push_back(lost_to_few_slots(r, demands));
    losses.push_back(lost_by_queues(r));
  }
  const Loss worst = *std::max_element(
      losses.begin(), losses.end(), [](const Loss& a, const Loss& b) { return a.share < b.share; });
  return worst.share >= kLossNamed ? worst : Loss{Cause::uneven, "", unused};
}

// Finds work that a cache of decoded samples would save, where decoding is most of the work.
Reuse find_reuse(const RunReport& r) {
  constexpr double kWorthIt = 0.5;  // share of the work
  const auto source = std::find_if(r.stages.begin(), r.stages.end(),
                                   [](const StageReport& s) { return s.stage == "file_list"; });
  // With several sources the option would have to be set for each.
  if (source == r.stages.end() || !source->option.is_settable) return {};
  for (const auto& [key, value] : source->summary)
    if (key == "feed" && value.text() != "preload") return {};
  Reuse out{source->name, {}, 0};
  if (r.filling_seconds >= kWorthIt * r.wall_seconds) {
    out.share = r.filling_seconds / r.wall_seconds;
    return out;
  }
  double all = 0, saved = 0;
  for (const StageReport& s : r.stages) {
    all += s.cpu_seconds;
    if (s.stage != "decode" && s.stage != "resample") continue;
    saved += s.cpu_seconds;
    out.stages.push_back(s.name);
  }
  if (saved <= kWorthIt * all) return {};
  out.share = saved / all;
  return out;
}

// Finds the sink of this run that waited longest for the disk.
Sync find_sync(const RunReport& r) {
  constexpr double kWorthIt = 0.05;
  Sync out;
  for (const StageReport& s : r.stages)
    for (const auto& [name, value] : s.summary) {
      double seconds = 0;
      if (name == "sync_seconds" && s.option.is_settable &&
          detail::parse_number(value, seconds).empty() &&
          seconds > std::max(kWorthIt, out.share) * r.wall_seconds)
        out = {s.name, seconds / r.wall_seconds};
    }
  return out;
}

}  // namespace

Limits find_limits(const RunReport& report) {
  Limits out;
  const Demands demands = demands_of(report);
  out.files_per_second = demands.files_per_second;
  out.ceilings = ceilings_of(demands);
  if (out.ceilings.empty()) return out;
  out.is_known = true;
  out.taken_share = demands.taken_share();
  out.reuse = find_reuse(report);
  const double in_stages = demands.core_seconds() - demands.between;
  for (const Demands::Stage& s : demands.stages) {
    const double share = in_stages > 0 ? s.cpu / in_stages : 0;
    if (share > out.heaviest_share) {
      out.heaviest = s.name;
      out.heaviest_share = share;
    }
  }
  const auto name = [&out](const Loss& loss) {
    out.cause = loss.cause;
    out.node = loss.node;
    out.share = loss.share;
  };
  const Ceiling& lowest = out.ceilings.front();
  double most_used = 0;
  for (const Ceiling& c : out.ceilings) most_used = std::max(most_used, c.used);
  const Loss outside = lost_outside(report);
  if (outside.share >= (outside.cause == Cause::loading ? kMostLoading : kMostOutside)) {
    name(outside);
    if (outside.cause == Cause::loading) {
      out.files_per_second = files_per_working_second(report);
      out.hints = hints_for_loading(out, report);
    }
    if (outside.cause == Cause::closing) out.sync = find_sync(report);
  } else if (const Loss program = lost_to_program(report); program.share >= kMostOutside) {
    name(program);
    out.reuse = {};
  } else if (most_used >= kUsedUp || (lowest.cause == Cause::lock && lowest.used >= kLockUsedUp)) {
    name({lowest.cause, lowest.node, lowest.used});
    out.hints = hints_for_resources(demands);
  } else {
    name(lost_inside(report, demands, 1 - most_used));
    if (out.cause == Cause::slots) {
      const StageReport& held = *stage_named(report, out.node);
      out.share = share_of(held.time.busy, held);
      out.hints = hints_for_slots(demands, out.node);
    } else {
      out.hints = hints_for_loss(out, report);
    }
  }
  return out;
}

}  // namespace melflow
