#include "apps/profile/remedies.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "apps/profile/figures.h"

namespace melflow {
namespace {

constexpr double kWorthIt = 1.05;  // smaller gains are no hint
constexpr double kSpare = 1.1;     // factor of spare capacity above the next limit
constexpr int kFarthest = 4;       // no predictions beyond this multiple of a tried value
constexpr std::size_t kMostHints = 3;
constexpr int kMostChanges = 3;  // in one hint

using Setting = std::pair<std::string, std::string>;

Demands::Stage& stage_of(Demands& d, const std::string& name) {
  return *std::find_if(d.stages.begin(), d.stages.end(),
                       [&](const Demands::Stage& s) { return s.name == name; });
}

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

// For a node that collects so many files per batch that later stages get too few batches.
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

// For decoded samples in larger blocks than they have by default: a file is admitted when the
// budget has room for its blocks.
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

// `taken`: the share of the cores that other programs had.
Hint predicted(std::vector<Setting> sets, double now, double likely, double high, double taken) {
  likely = std::min(likely, high);
  const double low = now + (likely - now) / 2;
  if (taken >= Limits::kDisturbed) return {std::move(sets), low, now, high};
  return {std::move(sets), likely, low, high};
}

}  // namespace

std::vector<Hint> hints_for_resources(const Demands& demands) {
  std::vector<Hint> out;
  const std::vector<Ceiling> now = ceilings_of(demands);
  const double reached = std::min(1.0, demands.files_per_second / lowest(now));
  const auto promise = [&](std::vector<Setting> sets, double high) {
    return predicted(std::move(sets), demands.files_per_second, reached * high, high,
                     demands.taken_share());
  };
  for (const Demands::Stage& s : demands.stages) {
    if (!s.cheaper) continue;
    const double high = lowest(ceilings_of(with_cheaper(demands, s)));
    if (high < kWorthIt * lowest(now)) continue;
    out.push_back(promise({{s.name + "." + s.cheaper->option, s.cheaper->value}}, high));
    out.back().output_size = s.cheaper->size;
  }
  for (const Ceiling& begin : now) {
    if (begin.files_per_second > kWorthIt * lowest(now)) continue;  // not a bottleneck
    Demands changed = demands;
    std::vector<Setting> sets;
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
    const double high = sets.empty() ? 0 : lowest(after);
    if (high < kWorthIt * lowest(now)) continue;
    Hint hint = promise(std::move(sets), high);
    if (reads_disk) hint.low = demands.files_per_second;  // the disk may be at its limit
    if (std::none_of(out.begin(), out.end(), [&](const Hint& h) { return h.sets == hint.sets; }))
      out.push_back(std::move(hint));
  }
  std::stable_sort(out.begin(), out.end(), [](const Hint& a, const Hint& b) {
    return a.likely != b.likely ? a.likely > b.likely : a.sets.size() < b.sets.size();
  });
  out.resize(std::min(out.size(), kMostHints));
  return out;
}

std::vector<Hint> hints_for_slots(const Demands& demands, const std::string& node) {
  const std::vector<Ceiling> now = ceilings_of(demands);
  const auto held = std::find_if(now.begin(), now.end(), [&](const Ceiling& c) {
    return c.cause == Cause::slots && c.node == node;
  });
  if (held == now.end()) return {};
  Demands changed = demands;
  const auto set = more_slots(changed, node, next_above(now, *held));
  if (!set) return {};
  const double high = lowest(ceilings_of(changed));
  constexpr double kReached = 0.9;  // of what then is the limit
  Hint hint =
      predicted({*set}, demands.files_per_second, kReached * high, high, demands.taken_share());
  if (hint.likely < kWorthIt * demands.files_per_second) return {};
  return {std::move(hint)};
}

std::vector<Hint> hints_for_loss(const Limits& limits, const RunReport& report) {
  std::vector<Setting> sets;
  std::optional<Setting> cheaper;
  if (limits.cause == Cause::memory) {
    const std::size_t bytes = std::max(2 * report.memory_budget, report.memory_wanted);
    const std::size_t mebibytes = (bytes + (1U << 20) - 1) >> 20;
    sets.emplace_back("memory.host", fmt::format("{}MiB", mebibytes));
    cheaper = smaller_blocks(report);
  }
  if (limits.cause == Cause::queue)
    for (const EdgeReport& e : report.edges)
      if (e.to == limits.node && sets.empty())
        sets.emplace_back(e.to + ".queue", std::to_string(kFarthest * e.capacity));
  if (limits.cause == Cause::beginning || limits.cause == Cause::ending)
    if (auto set = smaller_batches(report)) sets.push_back(std::move(*set));
  if (sets.empty() || limits.ceilings.empty()) return {};
  const double high = lowest(limits.ceilings);
  const double kept = std::max(0.01, 1 - limits.share);
  Hint hint = predicted(std::move(sets), limits.files_per_second, limits.files_per_second / kept,
                        high, limits.taken_share);
  if (hint.likely < kWorthIt * limits.files_per_second) return {};
  if (!cheaper) return {hint};
  Hint without_memory = hint;
  without_memory.sets = {*cheaper};
  return {std::move(without_memory), std::move(hint)};
}

std::vector<Hint> hints_for_loading(const Limits& limits, const RunReport& report) {
  std::vector<Hint> out;
  const auto promise = [&](std::vector<Setting> sets, double times) {
    Hint hint = predicted(std::move(sets), limits.files_per_second, times * limits.files_per_second,
                          times * limits.files_per_second, limits.taken_share);
    if (hint.likely >= kWorthIt * limits.files_per_second) out.push_back(std::move(hint));
  };
  const double loading = report.filling_seconds, computing = report.graph_seconds;
  for (const StageReport& s : report.stages)
    if (s.stage == "file_list" && s.option.is_settable)
      promise({{s.name + ".feed", "stream"}}, (loading + computing) / std::max(loading, computing));
  const int workers = std::min(report.cores, static_cast<int>(run_figures(report).files));
  if (workers > report.workers)
    promise({{"workers", std::to_string(workers)}}, static_cast<double>(workers) / report.workers);
  std::stable_sort(out.begin(), out.end(),
                   [](const Hint& a, const Hint& b) { return a.likely > b.likely; });
  return out;
}

}  // namespace melflow
