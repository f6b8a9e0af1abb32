#include "apps/verbs/metrics_file.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "apps/usage_errors.h"
#include "pipeline/base/cpu.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/base/threads.h"

namespace melflow {
namespace {

constexpr const char* kMark = "# HELP melflow_run_";

}  // namespace

MetricsFile::MetricsFile(const std::string& path, const std::vector<std::string>& inputs)
    : path_(path),
      run_(std::filesystem::path(path).stem()),
      began_(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
                 .count()) {
  if (std::filesystem::path(path).extension() != ".prom")
    throw UsageError(fmt::format(
        "--metrics: {} does not end in .prom, and the node exporter reads no other files; name it "
        "so",
        excerpt(path)));
  file_.emplace(path, kMark, inputs);
  if (!file_->is_replaced())
    throw RunError(
        fmt::format("{}: cannot be replaced as a whole, so that a reader would see halves of it; "
                    "name a regular file, in a folder in which files can be made",
                    path));
}

void MetricsFile::write(const RunMetrics& metrics) {
  using State = RunMetrics::State;
  has_ended_ = metrics.state != State::loading && metrics.state != State::running;
  try {
    if (!file_) file_.emplace(path_, kMark);
    file_->write(metrics_text(metrics, run_));
    file_.emplace(path_, kMark);
  } catch (const RunError& e) {
    file_.reset();
    if (problem_.empty()) problem_ = e.what();
  }
}

void MetricsFile::write_not_started() {
  if (has_ended_) return;
  RunMetrics none = beginning();
  none.state = RunMetrics::State::not_started;
  write(none);
}

RunMetrics MetricsFile::beginning() const {
  RunMetrics out;
  out.began = began_;
  return out;
}

MetricsWriter::MetricsWriter(const Runner& runner, MetricsFile& file, double every)
    : runner_(runner),
      file_(file),
      every_(every),
      before_(process_usage()),
      metrics_(file.beginning()) {
  for (const PlanNode& node : runner.plan().nodes) metrics_.nodes.push_back({node.name});
  write();
  // Where no thread can be started, the beginning and the end are written.
  (void)add_thread(thread_, "metrics", [this] { loop(); });
}

void MetricsWriter::write() {
  metrics_.resident = resident_bytes();
  metrics_.cpu_seconds = (process_usage() - before_).cpu_seconds();
  file_.write(metrics_);
}

void MetricsWriter::loop() {
  std::unique_lock lock(mutex_);
  constexpr std::chrono::duration<double> kMost{1e9};  // fits into the clock's type
  while (!ended_.wait_for(lock, std::min(every_, kMost), [this] { return is_over_; })) {
    update(metrics_, runner_.progress(), runner_.sample());
    write();
  }
}

void MetricsWriter::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_all();
  for (std::thread& t : thread_) t.join();
  thread_.clear();
}

void MetricsWriter::end(const RunReport& report) {
  stop();
  metrics_.resident = resident_bytes();
  update(metrics_, report, runner_.plan());
  file_.write(metrics_);
}

}  // namespace melflow
