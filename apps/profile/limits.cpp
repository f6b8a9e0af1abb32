#include "apps/profile/limits.h"

#include <algorithm>

#include "apps/profile/figures.h"

namespace melflow {
namespace {

constexpr double kUsedUp = 0.9;       // use of a resource from which on it is a limit
constexpr double kLockUsedUp = 0.6;   // nobody holds a lock while it passes to another thread
constexpr double kLossNamed = 0.1;    // of the time; a smaller loss is not named
constexpr double kMostOutside = 0.5;  // of the whole time, spent with no stage at work
// Share of the whole time spent on loading audio before rows are computed, which a stream does
// concurrently.
constexpr double kMostLoading = 0.25;

// Finds the longest part of the run in which no stage was at work.
Limit lost_outside(const RunReport& r) {
  Limit out;
  for (const auto& [cause, seconds] :
       {std::pair(Cause::listing, r.start_seconds), std::pair(Cause::loading, r.filling_seconds),
        std::pair(Cause::closing, r.finish_seconds)})
    if (seconds / r.wall_seconds > out.share) out = {cause, "", seconds / r.wall_seconds};
  return out;
}

// The loss because finished batches waited for the program that takes them.
Limit lost_to_program(const RunReport& r) {
  Limit out{Cause::program};
  for (const StageReport& s : r.stages)
    if (const Value* seconds = summary_of(s, "waiting_for_program"))
      out = {Cause::program, s.name, std::min(1.0, number_of(seconds) / r.graph_seconds)};
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

// The largest share of its time for which a node before `node`, near or far, is blocked: a full
// queue fills those before it.
double blocked_before(const RunReport& r, const std::string& node) {
  double out = 0;
  std::vector<std::string> behind{node};
  for (std::size_t n = 0; n < behind.size(); ++n)
    for (const EdgeReport& e : r.edges) {
      if (e.to != behind[n] || std::find(behind.begin(), behind.end(), e.from) != behind.end())
        continue;
      behind.push_back(e.from);
      if (const auto from = stage_named(r, e.from); from != r.stages.end())
        out = std::max(out, share_of(from->time.blocked_output, *from));
    }
  return out;
}

// Finds a node that is given fewer slots than there are workers while the node before it is
// blocked. It need not be at work all the time: a worker that leaves it goes on with what it has
// made, and beside other programs a worker may come late to what waits for it. So a queue before
// one slot is full because of that slot, even if it is empty in turn; but of a slot that is at work
// for less than half of the time only where no other node is at work for more.
Limit lost_to_few_slots(const RunReport& r, const Demands& demands) {
  constexpr double kHeld = 0.5;  // of the time at work or waiting for a worker, at least
  Limit out{Cause::slots};
  double most_at_work = 0;
  for (const StageReport& s : r.stages)
    most_at_work = std::max(most_at_work, share_of(s.time.busy, s));
  for (std::size_t i = 0; i < r.stages.size(); ++i) {
    const StageReport& s = r.stages[i];
    const Demands::Stage& d = demands.stages[i];
    const int most = d.option.most > 0 ? std::min(d.option.most, r.workers) : r.workers;
    if (!d.option.is_settable || !d.on_workers || d.has_calls ||
        d.slots >= std::min(most, demands.working_slots(most)))
      continue;
    const bool is_held = share_of(s.time.busy + s.time.waiting_core, s) >= kHeld;
    const double at_work = share_of(s.time.busy, s);
    if (at_work < kHeld && at_work < most_at_work) continue;
    for (const EdgeReport& e : r.edges) {
      const auto from = stage_named(r, e.from);
      if (e.to != s.name || from == r.stages.end()) continue;
      double share =
          d.slots > 1 ? share_of(from->time.blocked_output, *from) : blocked_before(r, s.name);
      if (!is_held) share = std::min(share, share_of(s.time.waiting_input, s));
      if (d.slots > 1 && (!is_held || e.mean_depth < 0.5 * e.capacity)) continue;
      if (share > out.share) out = {Cause::slots, s.name, share};
    }
  }
  return out;
}

// Finds the queue before a node that waits for input while the node before it is blocked.
Limit lost_by_queues(const RunReport& r) {
  Limit out{Cause::queue};
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
Limit lost_inside(const RunReport& r, const Demands& demands, double unused) {
  const std::size_t at = busiest(r, demands);
  const StageReport& most = r.stages[at];
  const int all = demands.stages[at].slots;
  const int slots = demands.stages[at].on_workers ? demands.working_slots(all) : all;
  const auto files = static_cast<double>(run_figures(r).files);
  if (files < slots) return {Cause::few_files, "", 1 - files / slots};
  const double at_the_end = std::min(unused, lost_at_the_end(r, slots));
  std::vector<Limit> losses{
      {Cause::memory, "", lost_by_memory(r)},
      {Cause::beginning, "",
       (r.first_row_seconds - r.start_seconds - r.filling_seconds) / r.graph_seconds},
      {Cause::ending, most.name, std::max(at_the_end, share_of(most.time.idle_after_end, most))}};
  // Nodes that wait for memory count as blocked, too, so queues are judged only without such waits.
  if (r.memory_wait_seconds < kLossNamed * r.graph_seconds) {
    losses.push_back(lost_to_few_slots(r, demands));
    losses.push_back(lost_by_queues(r));
  }
  const Limit worst =
      *std::max_element(losses.begin(), losses.end(),
                        [](const Limit& a, const Limit& b) { return a.share < b.share; });
  return worst.share >= kLossNamed ? worst : Limit{Cause::uneven, "", unused};
}

// Finds work that a cache of decoded samples would save, where decoding is most of the work.
std::optional<Saving> find_reuse(const RunReport& r) {
  constexpr double kWorthIt = 0.5;  // share of the work
  const auto source = std::find_if(r.stages.begin(), r.stages.end(),
                                   [](const StageReport& s) { return s.stage == "file_list"; });
  // With several sources the option would have to be set for each.
  if (source == r.stages.end() || !source->option.is_settable) return {};
  const Value* feed = summary_of(*source, "feed");
  if (feed != nullptr && feed->text() != "preload") return {};
  Saving out{{{source->name + ".feed", "cache"}}, r.filling_seconds / r.wall_seconds};
  if (out.share >= kWorthIt) return out;
  double all = 0, saved = 0;
  for (const StageReport& s : r.stages) {
    all += s.cpu_seconds;
    if (s.stage != "decode" && s.stage != "resample") continue;
    saved += s.cpu_seconds;
    out.stages.push_back(s.name);
  }
  out.share = saved / all;
  return saved > kWorthIt * all ? std::optional(out) : std::nullopt;
}

// Finds the sink of this run that waited longest until all data was on disk, as an option asks for.
std::optional<Saving> find_sync(const RunReport& r) {
  constexpr double kWorthIt = 0.05;
  std::optional<Saving> out;
  for (const StageReport& s : r.stages) {
    const double share = number_of(summary_of(s, "sync_seconds")) / r.wall_seconds;
    if (s.option.is_settable && share > (out ? out->share : kWorthIt))
      out = Saving{{{s.name + ".sync", "false"}}, share};
  }
  return out;
}

}  // namespace

Limits find_limits(const RunReport& report) {
  Limits out;
  const Demands& demands = out.demands = demands_of(report);
  out.files_per_second = demands.files_per_second;
  out.ceilings = ceilings_of(demands);
  if (!out.is_known()) return out;
  out.taken_share = demands.taken_share();
  const double in_stages = demands.core_seconds() - demands.between;
  for (const Demands::Stage& s : demands.stages)
    if (in_stages > 0 && s.cpu / in_stages > out.heaviest_share) {
      out.heaviest = s.name;
      out.heaviest_share = s.cpu / in_stages;
    }
  const Ceiling& lowest = out.ceilings.front();
  double most_used = 0;
  for (const Ceiling& c : out.ceilings) most_used = std::max(most_used, c.share);
  const bool is_used_up =
      most_used >= kUsedUp || (lowest.cause == Cause::lock && lowest.share >= kLockUsedUp);
  const Limit outside = lost_outside(report), program = lost_to_program(report);
  Limit& limit = out;
  if (outside.share >= (outside.cause == Cause::loading ? kMostLoading : kMostOutside))
    limit = outside;
  else if (program.share >= kMostOutside)
    limit = program;
  else if (is_used_up)
    limit = lowest;
  else
    limit = lost_inside(report, demands, 1 - most_used);
  if (out.cause == Cause::loading) out.files_per_second = files_per_working_second(report);
  if (out.cause == Cause::closing) out.sync = find_sync(report);
  if (out.cause != Cause::program) out.reuse = find_reuse(report);
  out.hints = hints_for(out, report, is_used_up);
  // A node that is held at its slots need not be at work all the time.
  if (out.cause == Cause::slots && !is_used_up) {
    const StageReport& held = *stage_named(report, out.node);
    out.share = share_of(held.time.busy, held);
  }
  return out;
}

}  // namespace melflow
