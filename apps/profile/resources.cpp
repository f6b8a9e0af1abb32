#include "apps/profile/resources.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "apps/profile/figures.h"

namespace melflow {
namespace {

constexpr double kAlike = 1.05;  // ceilings that differ by less count as equal
constexpr double kFromDisk =
    0.1;  // a smaller share of bytes from the disk is taken to cause no waiting
// Upper limit per call [s]: time beyond it was spent by threads that looked for work in vain.
constexpr double kMostBetween = 4e-6;

bool takes_from(const RunReport& report, const std::string& node, const std::string& source) {
  return std::any_of(report.edges.begin(), report.edges.end(),
                     [&](const EdgeReport& e) { return e.to == node && e.from == source; });
}

double number_in(const Value& map, const char* key) { return number_of(map.find(key)); }

// For a sink that compresses, and so has measured the cost of its chunks at level 1: returns that
// level, or no compression where it uses that level already.
std::optional<CheaperValue> cheaper_value(const StageReport& s) {
  constexpr double kMost = 0.99;  // both times are estimated from samples
  const Value* packing = summary_of(s, "packing");
  if (packing == nullptr || !s.option.is_settable || s.cpu_seconds <= 0) return {};
  const Value* fast = packing->find("level_1");
  const double now = number_in(*packing, "seconds"), size = number_in(*packing, "size");
  if (fast == nullptr || size <= 0) return {};
  const auto saved = [&](double seconds) {
    return std::clamp((now - seconds) / std::max(s.cpu_seconds, now), 0.0, kMost);
  };
  if (number_in(*packing, "level") > 1)
    return CheaperValue{"level", "1", saved(number_in(*fast, "seconds")),
                        number_in(*fast, "size") / size};
  return CheaperValue{"compression", "none", saved(0), 1 / size};
}

// Whether other processes can make a stage's calls of Python.
bool is_movable(const StageReport& stage, const Value& calls) {
  const Value* importable = calls.find("importable");
  return stage.option.is_settable && importable != nullptr && importable->text() == "true";
}

// Finds for how long Python's lock was held. Waiting for it is no work of a stage.
void find_lock(const RunReport& report, Demands& d) {
  double held = 0, cpu = 0;
  std::vector<Demands::Stage*> callers;
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    const Value* lock = summary_of(report.stages[i], "lock");
    if (lock == nullptr) continue;
    Demands::Stage& s = d.stages[i];
    s.is_movable = is_movable(report.stages[i], *lock);
    held = std::max(held, number_in(*lock, "held") / number_in(*lock, "looks"));
    cpu += s.cpu;
    callers.push_back(&s);
  }
  for (Demands::Stage* s : callers) {
    if (cpu > 0) s->lock = held / d.files_per_second * s->cpu / cpu;
    s->busy -= held * std::max(0.0, s->busy - s->cpu);
  }
}

// Where calls of Python are not made by the threads that ask for them, the calls are the slots.
void find_calls(const RunReport& report, Demands& d) {
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    const Value* calls = summary_of(report.stages[i], "calls");
    if (calls == nullptr) continue;
    Demands::Stage& s = d.stages[i];
    s.has_calls = true;
    s.on_workers = false;
    s.slots = std::max(1, static_cast<int>(number_in(*calls, "at_once")));
    const double seconds = number_in(*calls, "seconds");
    s.busy = seconds / static_cast<double>(run_figures(report).files);
    s.computes = number_in(*calls, "cpu_seconds") + number_in(*calls, "core_wait_seconds") >=
                 kAllWorking * seconds;
    s.is_movable = is_movable(report.stages[i], *calls);
  }
}

}  // namespace

const char* to_text(Cause cause) {
  static constexpr const char* kNames[] = {
      "cores",  "disk",      "lock",    "workers", "concurrency", "memory",  "queue", "few_files",
      "ending", "beginning", "listing", "loading", "closing",     "program", "uneven"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Cause::uneven) + 1);
  return kNames[static_cast<std::size_t>(cause)];
}

double Demands::worker_seconds() const {
  double out = between;
  for (const Stage& s : stages) out += s.on_workers ? s.busy : 0;
  return out;
}

double Demands::core_seconds() const {
  double out = between;
  for (const Stage& s : stages) out += s.cpu;
  return out;
}

double Demands::workers_processor_share() const {
  double cpu = core_wait + between;
  for (const Stage& s : stages) cpu += s.on_workers ? s.cpu : 0;
  const double busy = worker_seconds();
  return busy > 0 ? std::min(1.0, cpu / busy) : 1;
}

double Demands::taken_share() const {
  const double ready = core_seconds() + core_wait;
  int calls = 0;
  for (const Stage& s : stages) calls += s.computes ? s.slots : 0;
  // Workers are idle while functions in other processes are the limit.
  const double computing = calls == 0 ? workers : files_per_second * worker_seconds() + calls;
  return std::lround(computing) <= cores && ready > 0 ? core_wait / ready : 0;
}

int Demands::working_slots(int slots) const {
  const int most = workers_processor_share() >= kAllWorking ? std::min(workers, cores) : workers;
  return std::min(slots, most);
}

int Demands::usable_slots(const Stage& stage) const {
  return stage.on_workers ? std::min(stage.slots, workers) : stage.slots;
}

Demands demands_of(const RunReport& report) {
  Demands out;
  const RunFigures figures = run_figures(report);
  if (figures.files == 0 || report.graph_seconds <= 0 || report.stages.empty()) return out;
  const auto files = static_cast<double>(figures.files);
  out.workers = report.workers;
  out.cores = report.cores;
  out.core_wait = report.core_wait_seconds / files;
  out.files = static_cast<int>(std::min<std::size_t>(figures.files, 1U << 30));
  out.files_per_second = files / report.graph_seconds;
  const bool reads_disk =
      report.usage.has_disk && report.bytes_read > 0 && figures.page_cache_share < 1 - kFromDisk;
  const std::string& source = report.stages.front().name;
  for (const StageReport& s : report.stages) {
    Demands::Stage d{s.name,
                     s.option,
                     s.concurrency,
                     s.on_workers,
                     s.time.busy / files,
                     s.cpu_seconds / files,
                     0,
                     cheaper_value(s)};
    if (reads_disk && takes_from(report, s.name, source)) d.disk = std::max(0.0, d.busy - d.cpu);
    out.stages.push_back(std::move(d));
  }
  find_calls(report, out);
  find_lock(report, out);
  std::size_t calls = 0;
  for (const StageReport& s : report.stages) calls += s.service.calls;
  out.between = std::clamp(report.graph_cpu_seconds / files - out.core_seconds(), 0.0,
                           kMostBetween * static_cast<double>(calls) / files);
  return out;
}

std::vector<Ceiling> ceilings_of(const Demands& d) {
  std::vector<Ceiling> out;
  const auto add = [&](Cause cause, const std::string& node, double capacity, double demand) {
    if (demand > 0)
      out.push_back({{cause, node, d.files_per_second * demand / capacity}, capacity / demand});
  };
  const bool workers_are_cores = d.workers >= d.cores && d.workers_processor_share() >= kAllWorking;
  add(Cause::cores, "", d.cores, d.core_seconds());
  // Where workers hardly wait in stages, workers without idle time mean cores without idle time.
  if (workers_are_cores && !out.empty()) {
    const double by_workers = d.workers / d.worker_seconds();
    if (d.worker_seconds() > 0 && by_workers < out.front().files_per_second)
      out.front() = {{Cause::cores, "", d.files_per_second / by_workers}, by_workers};
  }
  // The same holds if as many other processes compute.
  for (const Demands::Stage& s : d.stages) {
    if (!s.computes || s.slots < d.cores || s.busy <= 0 || out.empty()) continue;
    const double by_calls = s.slots / s.busy;
    if (by_calls < out.front().files_per_second)
      out.front() = {{Cause::cores, "", d.files_per_second / by_calls}, by_calls};
  }
  for (const Demands::Stage& s : d.stages) add(Cause::disk, s.name, d.usable_slots(s), s.disk);
  double lock = 0;
  const Demands::Stage* most = nullptr;
  for (const Demands::Stage& s : d.stages) {
    lock += s.lock;
    if (most == nullptr || s.lock > most->lock) most = &s;
  }
  if (most != nullptr) add(Cause::lock, most->name, 1, lock);
  add(Cause::workers, "", d.workers, d.worker_seconds());
  for (const Demands::Stage& s : d.stages) add(Cause::slots, s.name, s.slots, s.busy);
  std::stable_sort(out.begin(), out.end(), [](const Ceiling& a, const Ceiling& b) {
    return a.files_per_second < b.files_per_second;
  });
  if (out.empty()) return out;
  const double alike = kAlike * out.front().files_per_second;
  const auto end = std::find_if(out.begin(), out.end(),
                                [alike](const Ceiling& c) { return c.files_per_second > alike; });
  std::stable_sort(out.begin(), end,
                   [](const Ceiling& a, const Ceiling& b) { return a.cause < b.cause; });
  return out;
}

}  // namespace melflow
