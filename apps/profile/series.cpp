#include "apps/profile/series.h"

#include <algorithm>
#include <chrono>

#include "pipeline/base/cpu.h"
#include "pipeline/base/process_usage.h"
#include "pipeline/base/threads.h"

namespace melflow {
namespace {

template <class T>
void keep_every_second(std::vector<T>& values) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < values.size(); i += 2) values[kept++] = values[i];
  values.resize(kept);
}

}  // namespace

void Series::add(const RunSample& sample, std::size_t resident_bytes, double cpu,
                 std::int64_t disk_read) {
  if (sample.nodes.empty() || sample.nodes.size() != nodes.size()) return;
  // Allows for the inexact clock.
  constexpr double kNearly = 0.9;
  if (!seconds.empty() && sample.seconds - seconds.back() < kNearly * step) return;
  seconds.push_back(sample.seconds);
  files.push_back(sample.files);
  rows.push_back(sample.rows);
  bytes_read.push_back(sample.bytes_read);
  reserved.push_back(sample.reserved);
  resident.push_back(resident_bytes);
  cpu_seconds.push_back(cpu);
  disk_read_bytes.push_back(disk_read);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].waiting.push_back(sample.nodes[i].waiting);
    nodes[i].time.push_back(sample.nodes[i].time);
  }
  if (size() > kMost) thin_out();
}

void Series::thin_out() {
  step *= 2;
  keep_every_second(seconds);
  keep_every_second(files);
  keep_every_second(rows);
  keep_every_second(bytes_read);
  keep_every_second(reserved);
  keep_every_second(resident);
  keep_every_second(cpu_seconds);
  keep_every_second(disk_read_bytes);
  for (Node& node : nodes) {
    keep_every_second(node.waiting);
    keep_every_second(node.time);
  }
}

WorkerTimes worker_times(const VisitLog& visits, const RunReport& report) {
  std::vector<BusyTimes> threads = visits.times_by_thread();
  double step = BusyTimes::kFirstStep;
  for (const BusyTimes& t : threads) step = std::max(step, t.step());
  WorkerTimes out;
  out.from = std::chrono::duration<double>(visits.began() - report.began).count();
  for (;; step *= 2) {
    out.step = step;
    out.workers.clear();
    std::size_t figures = 0;
    for (BusyTimes& t : threads) {
      t.widen(step);
      std::vector<std::vector<double>> nodes(report.stages.size());
      bool is_worker = false;
      for (std::size_t n = 0; n < std::min(nodes.size(), t.nodes().size()); ++n) {
        if (!report.stages[n].on_workers) continue;
        nodes[n] = t.nodes()[n];
        figures += nodes[n].size();
        is_worker = is_worker || !nodes[n].empty();
      }
      if (is_worker) out.workers.push_back(std::move(nodes));
    }
    if (figures <= kMostFigures) return out;
  }
}

SeriesSampler::SeriesSampler(const Runner& runner) : runner_(runner) {
  for (const PlanNode& node : runner.plan().nodes) series_.nodes.push_back({node.name, {}, {}});
  (void)add_thread(thread_, "series", [this] { work(); });
}

void SeriesSampler::work() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::milliseconds(100), [this] { return is_over_; }))
    take();
}

void SeriesSampler::take() {
  const ProcessUsage usage = process_usage();
  series_.add(runner_.sample(), resident_bytes(), usage.cpu_seconds(), usage.disk_read_bytes);
}

Series SeriesSampler::end() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_all();
  for (std::thread& t : thread_) t.join();
  thread_.clear();
  return std::move(series_);
}

}  // namespace melflow
