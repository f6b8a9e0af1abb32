#include "apps/profile/series.h"

#include <chrono>

#include "pipeline/cpu.h"
#include "pipeline/process_usage.h"
#include "pipeline/threads.h"

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
  // A clock is never exact.
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

SeriesSampler::SeriesSampler(const Runner& runner) : runner_(runner) {
  for (const PlanNode& node : runner.plan().nodes) series_.nodes.push_back({node.name, {}, {}});
  (void)add_thread(thread_, [this] { work(); });
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
