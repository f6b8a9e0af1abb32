#include "pipeline/runner.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "pipeline/cpu.h"
#include "pipeline/scheduler.h"

namespace melflow {

class Runner::Impl {
 public:
  explicit Impl(Plan plan) : plan_(std::move(plan)), pool_(plan_.host_memory) {}

  RunReport run();
  void stop() {
    if (stop_requested_.exchange(true)) return;  // also when a stage says so while being stopped
    const std::lock_guard lock(scheduler_mutex_);
    if (scheduler_) scheduler_->stop();
  }
  Progress progress() const;
  std::vector<Remark> remarks() const;
  const Plan& plan() const { return plan_; }

 private:
  using Clock = std::chrono::steady_clock;
  AnyStage& source() const { return *plan_.nodes.front().stage; }
  void open_budget();
  void start_stages(RunContext& run);
  void execute(RunContext& run, RunReport& report);
  void settle(RunReport& report);
  void finish_stages(RunContext& run, RunReport& report);
  void watch_failures();

  // Before the plan, so destroyed after its stages: they may hold pieces of the run.
  Ledger ledger_;
  std::unique_ptr<MemoryBudget> budget_;
  Plan plan_;
  BufferPool pool_;
  std::size_t index_bytes_ = 0;
  std::mutex warnings_mutex_;  // one of its own: a stop() may make a stage warn
  std::vector<std::string> warnings_;
  std::atomic<bool> stop_requested_{false};
  std::atomic<bool> too_many_failures_{false};
  bool keeps_what_is_done_ = false;  // although the run failed
  std::atomic<Clock::time_point> began_{Clock::now()};
  mutable std::mutex scheduler_mutex_;  // guards its coming and going
  std::unique_ptr<Scheduler> scheduler_;
};

void Runner::Impl::open_budget() {
  index_bytes_ = source().source_index_bytes();
  const std::size_t need = index_bytes_ + plan_.least_memory;
  if (need > plan_.host_memory)
    throw RunError(fmt::format(
        "memory.host: {} is too little: the index of {} files takes {:.1f} MiB and the largest "
        "block needs {:.1f} MiB at once; allow at least {:.0f} MiB",
        to_text(Bytes{plan_.host_memory}), source().source_count(),
        static_cast<double>(index_bytes_) / (1 << 20),
        static_cast<double>(plan_.least_memory) / (1 << 20),
        static_cast<double>(need) / (1 << 20) + 1));
  const std::size_t room = plan_.host_memory - index_bytes_;
  // One block more than it needs at least, so that stages still overlap for the oldest file.
  const std::size_t reserve = plan_.least_memory + plan_.largest_block;
  budget_ = std::make_unique<MemoryBudget>(room, std::min(reserve, room));
}

void Runner::Impl::start_stages(RunContext& run) {
  source().start(run);
  open_budget();
  run.budget = budget_.get();
  std::vector<std::string> names;
  for (const PlanNode& n : plan_.nodes) names.push_back(n.name);
  ledger_.open(source().source_count(), std::move(names));
  watch_failures();
  for (PlanNode& n : plan_.nodes)
    if (n.from >= 0) n.stage->start(run);
}

void Runner::Impl::watch_failures() {
  const FailureLimit& limit = plan_.max_failures;
  if (!limit.count && !limit.share) return;
  ledger_.subscribe([this, limit](std::size_t, Outcome outcome) {
    if (outcome != Outcome::failed) return;
    const Ledger::Counts c = ledger_.counts();
    const bool over = (limit.count && c.failed > *limit.count) ||
                      (limit.share &&
                       static_cast<double>(c.failed) > *limit.share * static_cast<double>(c.found));
    // Without a lock: the scheduler outlives every stream.
    if (over && !too_many_failures_.exchange(true) && scheduler_) scheduler_->stop();
  });
}

void Runner::Impl::execute(RunContext& run, RunReport& report) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(plan_.workers));
  tbb::task_arena arena(plan_.workers);
  arena.execute([&] {
    {
      const std::lock_guard lock(scheduler_mutex_);
      scheduler_ = std::make_unique<Scheduler>(plan_, run);
      budget_->on_release([this] { scheduler_->memory_freed(); });
    }
    if (stop_requested_) scheduler_->stop();
    scheduler_->start();
    scheduler_->wait();
    scheduler_->fill(report);
    budget_->on_release({});
    for (PlanNode& n : plan_.nodes) n.stage->drop_waiting();
    settle(report);
    const std::lock_guard lock(scheduler_mutex_);
    scheduler_.reset();
  });
}

// Closes the lines of what was never begun, and says how the run ended, before the sinks are told.
void Runner::Impl::settle(RunReport& report) {
  const std::size_t found = source().source_count();
  for (std::size_t i = scheduler_->admitted(); i < found; ++i)
    if (ledger_.outcome(i) == Outcome::open) ledger_.close(i, Outcome::not_run, -1, "");
  const Ledger::Counts c = ledger_.counts();
  if (c.not_run > 0) report.ending = Ending::stopped;
  if (too_many_failures_) {
    // Like a run that was stopped: the sinks keep what is done, with the list of failures.
    report.ending = Ending::failed;
    keeps_what_is_done_ = true;
    report.error = fmt::format(
        "{} of {} files failed, more than max_failures ({}) allows; the run was stopped", c.failed,
        c.found, OptionType<FailureLimit>::echo(plan_.max_failures).text());
  }
  if (const auto error = scheduler_->error()) {
    report.ending = Ending::failed;
    keeps_what_is_done_ = false;
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      report.error = e.what();
    }
  }
}

void Runner::Impl::finish_stages(RunContext& run, RunReport& report) {
  for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
    AnyStage& stage = *plan_.nodes[i].stage;
    try {
      stage.finish(run, keeps_what_is_done_ ? Ending::stopped : report.ending);
    } catch (const std::exception& e) {
      report.ending = Ending::failed;
      if (report.error.empty()) report.error = e.what();
    }
    report.stages[i].summary = stage.summary();
  }
}

RunReport Runner::Impl::run() {
  began_ = Clock::now();
  RunReport report;
  report.workers = plan_.workers;
  RunContext context{pool_,
                     ledger_,
                     nullptr,
                     plan_.settings,
                     source(),
                     plan_.workers,
                     [this](std::string text) {
                       const std::lock_guard lock(warnings_mutex_);
                       warnings_.push_back(std::move(text));
                     },
                     plan_.pinned_memory,
                     plan_.device_memory,
                     plan_.update,
                     static_cast<int>(std::count_if(
                         plan_.nodes.begin(), plan_.nodes.end(),
                         [](const PlanNode& n) { return n.info->traits.kind == StageKind::sink; }))};
  for (const Problem& w : plan_.warnings) warnings_.push_back(w.str());
  start_stages(context);
  execute(context, report);
  finish_stages(context, report);

  report.wall_seconds = std::chrono::duration<double>(Clock::now() - began_.load()).count();
  report.counts = ledger_.counts();
  report.memory_budget = plan_.host_memory;
  report.memory_index = index_bytes_;
  report.memory_peak = index_bytes_ + budget_->peak();
  report.resident_peak = peak_resident_bytes();
  report.warnings = warnings_;
  const Ledger::Counts& c = report.counts;
  if (c.ok + c.skipped + c.failed + c.not_run != c.found) {
    report.ending = Ending::failed;
    report.error = fmt::format(
        "the accounts do not balance (a defect of melflow): {} ok + {} skipped + {} failed + {} "
        "not run, but {} found",
        c.ok, c.skipped, c.failed, c.not_run, c.found);
  }
  return report;
}

Progress Runner::Impl::progress() const {
  Progress p;
  p.counts = ledger_.counts();
  p.seconds = std::chrono::duration<double>(Clock::now() - began_.load()).count();
  const std::lock_guard lock(scheduler_mutex_);
  if (scheduler_) {
    p.rows = scheduler_->rows_taken();
    p.bytes = scheduler_->bytes_read();
  }
  return p;
}

std::vector<Remark> Runner::Impl::remarks() const {
  std::vector<Remark> out;
  const std::size_t count = ledger_.counts().found;
  for (std::size_t i = 0; i < count; ++i) {
    Ledger::Entry e = ledger_.entry(i);
    if (e.outcome == Outcome::not_run || (e.outcome == Outcome::ok && e.reason.empty())) continue;
    out.push_back({i, source().source_name(i), std::move(e)});
  }
  return out;
}

Runner::Runner(Plan plan) : impl_(std::make_unique<Impl>(std::move(plan))) {}
Runner::~Runner() = default;
RunReport Runner::run() { return impl_->run(); }
void Runner::stop() { impl_->stop(); }
Progress Runner::progress() const { return impl_->progress(); }
std::vector<Remark> Runner::remarks() const { return impl_->remarks(); }
const Plan& Runner::plan() const { return impl_->plan(); }

}  // namespace melflow
