#include "apps/verbs/watched_run.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "apps/console.h"
#include "apps/exit_codes.h"
#include "apps/report/printing.h"
#include "apps/signals.h"
#include "pipeline/base/threads.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

// Stops a run after some seconds; if no thread can be started for that, the run continues.
class StopAfter {
 public:
  StopAfter(Runner& runner, double seconds) {
    if (seconds <= 0) return;
    (void)add_thread(thread_, "deadline", [this, &runner, seconds] {
      std::unique_lock lock(mutex_);
      if (!ended_.wait_for(lock, std::chrono::duration<double>(seconds),
                           [this] { return is_over_; }))
        runner.stop();
    });
  }
  ~StopAfter() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    ended_.notify_all();
    for (std::thread& t : thread_) t.join();
  }
  StopAfter(const StopAfter&) = delete;
  StopAfter& operator=(const StopAfter&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::vector<std::thread> thread_;  // one, or none
};

}  // namespace

WatchedRun run_watched(Runner& runner, const Watch& watch) {
  ProgressDisplay display(runner, watch.progress, watch.every);
  std::atomic<bool> interrupted{false};
  // Signals are blocked before the first thread starts, and unblocked before the display goes.
  const StopOnSignal signals(
      [&] {
        interrupted = true;
        if (watch.interrupted != nullptr) *watch.interrupted = true;
        runner.stop();
        if (!watch.quiet)
          display.say("stopping: what is under way will be finished; Ctrl-C again ends at once");
      },
      [&] {
        display.leave();
        if (watch.leave) watch.leave();
      });
  if (const auto task = runner.plan().services.find<RunTask>(); task && console() == nullptr)
    task->resume.leave = [&display](const std::string& why) {
      display.leave();
      complain(why);
      _exit(kStopped);
    };
  const StopAfter limit(runner, watch.seconds);
  std::optional<SeriesSampler> sampler;
  if (watch.with_series) sampler.emplace(runner);
  std::optional<MetricsWriter> metrics;
  if (watch.metrics != nullptr) metrics.emplace(runner, *watch.metrics, watch.metrics_every);
  display.start();
  RunReport report = runner.run();
  display.clear();
  if (metrics) metrics->end(report);
  if (watch.metrics != nullptr && !watch.metrics->problem().empty())
    report.warnings.push_back("--metrics: " + watch.metrics->problem());
  return {std::move(report), interrupted.load(), sampler ? sampler->end() : Series{}};
}

QuietRun run_quietly(Runner& runner, const char* stopped) {
  QuietRun out;
  out.report = run_watched(runner, kQuietly).report;
  for (const std::string& warning : out.report.warnings) say(stderr, "warning: {}\n", warning);
  if (out.report.ending == Ending::failed) {
    complain(out.report.error);
    out.failure = kRunFailed;
  } else if (out.report.ending == Ending::stopped) {
    complain(stopped);
    out.failure = kStopped;
  }
  return out;
}

}  // namespace melflow
