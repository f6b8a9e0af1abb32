// Changes of options that would lift a limit, with the predicted gain.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "apps/profile/figures.h"
#include "apps/profile/limits.h"

namespace melflow {
namespace {

constexpr double kWorthIt = 1.05;  // smaller gains are no hint
constexpr double kSpare = 1.1;     // factor of spare capacity above the next limit
constexpr int kFarthest = 4;       // no predictions beyond this multiple of a tried value
constexpr std::size_t kMostHints = 3;
constexpr int kMostChanges = 3;  // in one hint

using Setting = std::pair<std::string, std::string>;

// Returns as many slots as `per_second` files need.
std::optional<Setting> more_slots(Demands& d, const std::string& node, double per_second) {
  Demands::Stage& s = stage_of(d, node);
  if (s.has_calls && !s.is_movable) return std::nullopt;
  int most = s.on_workers ? d.workers : kFarthest * s.slots;
  if (s.computes) most = d.cores;
  most = std::min(most, d.files);
  if (s.option.most > 0) most = std::min(most, s.option.most);
  if (!s.option.is_settable || most <= s.slots) return std::nullopt;
  const double wanted = std::min(1e6, std::ceil(kSpare * per_second * s.busy));
  s.slots = std::clamp(static_cast<int>(wanted), s.slots + 1, most);
  return Setting(node + (s.has_calls ? ".processes" : ".concurrency"), std::to_string(s.slots));
}

// Returns one worker per core or, where workers wait in stages, as many as keep the cores busy.
std::optional<Setting> more_workers(Demands& d) {
  const double share = std::max(d.workers_processor_share(), 1.0 / kFarthest);
  int wanted = d.cores;
  if (share < kAllWorking) wanted = static_cast<int>(std::ceil(d.cores / share));
  wanted = std::min({wanted, kFarthest * d.cores, d.files});
  if (wanted <= d.workers) return std::nullopt;
  d.workers = wanted;
  for (Demands::Stage& s : d.stages)
    if (s.option.follows_workers) s.slots = wanted;
  return Setting("workers", std::to_string(wanted));
}

// Returns as many processes as there are cores for the functions of a stage.
std::optional<Setting> other_processes(Demands& d, const std::string& node) {
  Demands::Stage& s = stage_of(d, node);
  const int processes = std::min(d.cores, d.files);
  if (!s.is_movable || processes < 2) return std::nullopt;
  s.slots = processes;
  s.on_workers = false;
  s.busy = s.cpu;
  s.lock = 0;
  return Setting(node + ".processes", std::to_string(processes));
}

std::optional<Setting> lift(Demands& d, const Ceiling& ceiling, double next) {
  switch (ceiling.cause) {
    case Cause::workers:
      return more_workers(d);
    case Cause::slots:
      return more_slots(d, ceiling.node, next);
    case Cause::lock:
      return other_processes(d, ceiling.node);
    case Cause::disk: {
      const Demands::Stage& reader = stage_of(d, ceiling.node);
      if (reader.on_workers && reader.slots >= d.workers) return more_workers(d);
      return more_slots(d, ceiling.node, next);
    }
    default:
      return std::nullopt;
  }
}

// Returns smaller batches for a node that collects so many files per batch that later stages get
// too few batches.
std::optional<Setting> smaller_batches(const RunReport& report) {
  constexpr std::size_t kPieces = 8;  // per slot
  for (std::size_t i = 0; i + 1 < report.stages.size(); ++i) {
    const StageReport& s = report.stages[i];
    const auto slots =
        static_cast<std::size_t>(std::min(report.stages[i + 1].concurrency, report.workers));
    if (s.stage != "batch" || s.items_out >= 2 * slots || s.items_in < 2 * kPieces * slots)
      continue;
    return Setting(s.name + ".files", std::to_string(s.items_in / (kPieces * slots)));
  }
  return std::nullopt;
}

// Returns the default size of decoded blocks if they are larger: a file is admitted when the budget
// has room for its blocks.
std::optional<Setting> smaller_blocks(const RunReport& report) {
  constexpr std::size_t kUsual = std::size_t{512} << 10;  // the default of decode.block
  for (const StageReport& s : report.stages)
    if (s.stage == "decode" && s.option.is_settable && s.items_out > 0 &&
        s.bytes_out / s.items_out > kUsual)
      return Setting(s.name + ".block", "512KiB");
  return std::nullopt;
}

// Returns the demands after applying the option that makes `stage` cheaper.
Demands with_cheaper(Demands d, const Demands::Stage& stage) {
  Demands::Stage& changed = stage_of(d, stage.name);
  changed.busy *= 1 - stage.cheaper->saves;
  changed.cpu *= 1 - stage.cheaper->saves;
  return d;
}

// Returns the lowest ceiling above `this_one`, or twice `this_one` if there is none.
double next_above(const std::vector<Ceiling>& ceilings, const Ceiling& this_one) {
  for (const Ceiling& c : ceilings)
    if (&c != &this_one && c.cause != Cause::disk && c.node != this_one.node &&
        c.files_per_second > this_one.files_per_second)
      return c.files_per_second;
  return 2 * this_one.files_per_second;
}

double lowest(const std::vector<Ceiling>& ceilings) {
  double out = ceilings.front().files_per_second;
  for (const Ceiling& c : ceilings) out = std::min(out, c.files_per_second);
  return out;
}

// Collects hints that are worth it.
class Hints {
 public:
  explicit Hints(const Limits& limits)
      : now_(limits.files_per_second),
        least_(kWorthIt *
               (limits.cause == Cause::loading ? now_ : std::min(now_, lowest(limits.ceilings)))),
        is_disturbed_(limits.taken_share >= Limits::kDisturbed) {}

  /// `is_sure`: whether half of the gain is promised at least.
  void add(Settings sets, double likely, double high, double output_size = 1, bool is_sure = true) {
    likely = std::min(likely, high);
    if (likely < least_ || sets.empty()) return;
    double low = now_ + (likely - now_) / 2;
    if (is_disturbed_) likely = std::exchange(low, now_);
    if (std::none_of(all_.begin(), all_.end(), [&](const Hint& h) { return h.sets == sets; }))
      all_.push_back({std::move(sets), likely, is_sure ? low : now_, high, output_size});
  }
  std::vector<Hint> best() {
    std::stable_sort(all_.begin(), all_.end(), [](const Hint& a, const Hint& b) {
      return a.likely != b.likely ? a.likely > b.likely : a.sets.size() < b.sets.size();
    });
    all_.resize(std::min(all_.size(), kMostHints));
    return std::move(all_);
  }

 private:
  double now_, least_;  // a run may be slightly above its ceiling
  bool is_disturbed_;
  std::vector<Hint> all_;
};

// Adds hints to change workers or concurrency, and options that make a stage cheaper.
void lift_resources(Hints& hints, const Limits& limits) {
  const Demands& demands = limits.demands;
  const std::vector<Ceiling>& now = limits.ceilings;
  const double reached = std::min(1.0, demands.files_per_second / lowest(now));
  for (const Demands::Stage& s : demands.stages) {
    if (!s.cheaper) continue;
    const double high = lowest(ceilings_of(with_cheaper(demands, s)));
    hints.add({{s.name + "." + s.cheaper->option, s.cheaper->value}}, reached * high, high,
              s.cheaper->size);
  }
  for (const Ceiling& begin : now) {
    if (begin.files_per_second > kWorthIt * lowest(now)) continue;  // not a bottleneck
    Demands changed = demands;
    Settings sets;
    std::vector<Ceiling> after = now;
    Ceiling limit = begin;
    // Lifts the next bottleneck, too, where one change alone has no effect.
    bool reads_disk = false;
    for (int i = 0; i < kMostChanges; ++i) {
      const auto same = std::find_if(after.begin(), after.end(), [&](const Ceiling& c) {
        return c.cause == limit.cause && c.node == limit.node;
      });
      reads_disk = reads_disk || limit.cause == Cause::disk;
      const auto set = lift(changed, *same, next_above(after, *same));
      if (!set) break;
      sets.push_back(*set);
      after = ceilings_of(changed);
      if (lowest(after) >= kWorthIt * lowest(now)) break;
      limit = after.front();
    }
    // The disk may be at its limit.
    hints.add(std::move(sets), reached * lowest(after), lowest(after), 1, !reads_disk);
  }
}

// Adds a hint to give more slots to the node that has too few, if it may have more.
void lift_slots(Hints& hints, const Limits& limits) {
  constexpr double kReached = 0.9;  // of what then is the limit
  const auto held = std::find_if(
      limits.ceilings.begin(), limits.ceilings.end(),
      [&](const Ceiling& c) { return c.cause == Cause::slots && c.node == limits.node; });
  Demands changed = limits.demands;
  if (held == limits.ceilings.end()) return;
  if (const auto set = more_slots(changed, limits.node, next_above(limits.ceilings, *held))) {
    const double high = lowest(ceilings_of(changed));
    hints.add({*set}, kReached * high, high);
  }
}

// Adds hints for a run that lost the share `limits.share` of its time to memory, a queue or large
// batches.
void avoid_loss(Hints& hints, const Limits& limits, const RunReport& report) {
  const auto add = [&](std::optional<Setting> set) {
    const double kept = std::max(0.01, 1 - limits.share);
    if (set) hints.add({std::move(*set)}, limits.files_per_second / kept, lowest(limits.ceilings));
  };
  if (limits.cause == Cause::memory) {
    const std::size_t bytes = std::max(2 * report.memory_budget, report.memory_wanted);
    add(smaller_blocks(report));
    add(Setting("memory.host", fmt::format("{}MiB", (bytes + (1U << 20) - 1) >> 20)));
  }
  if (limits.cause == Cause::queue)
    for (const EdgeReport& e : report.edges)
      if (e.to == limits.node)
        return add(Setting(e.to + ".queue", std::to_string(kFarthest * e.capacity)));
  if (limits.cause == Cause::beginning || limits.cause == Cause::ending)
    add(smaller_batches(report));
}

// Adds hints to load concurrently, which gains as far as loading and computing overlap, and to have
// a worker for each core.
void load_faster(Hints& hints, const Limits& limits, const RunReport& report) {
  const auto add = [&](Setting set, double times) {
    hints.add({std::move(set)}, times * limits.files_per_second, times * limits.files_per_second);
  };
  const double loading = report.filling_seconds, computing = report.graph_seconds;
  for (const StageReport& s : report.stages)
    if (s.stage == "file_list" && s.option.is_settable)
      add({s.name + ".feed", "stream"}, (loading + computing) / std::max(loading, computing));
  const int workers = std::min(report.cores, limits.demands.files);
  add({"workers", std::to_string(workers)}, static_cast<double>(workers) / report.workers);
}

}  // namespace

std::vector<Hint> hints_for(const Limits& limits, const RunReport& report, bool is_used_up) {
  Hints hints(limits);
  if (limits.cause == Cause::loading)
    load_faster(hints, limits, report);
  else if (limits.cause == Cause::slots && !is_used_up)
    lift_slots(hints, limits);
  else if (limits.cause <= Cause::slots)
    lift_resources(hints, limits);
  else
    avoid_loss(hints, limits, report);
  return hints.best();
}

}  // namespace melflow
