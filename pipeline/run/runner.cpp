#include "pipeline/run/runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/cpu.h"
#include "pipeline/base/text.h"
#include "pipeline/base/threads.h"
#include "pipeline/options/option_type.h"
#include "pipeline/plan/plan_memory.h"
#include "pipeline/plan/plan_reach.h"
#include "pipeline/report/reasons.h"
#include "pipeline/run/task_graph.h"
#include "pipeline/run/workers.h"

namespace melflow {

class Runner::Impl {
 public:
  Impl(Plan plan, RunObserver* observer, VisitLog* visits)
      : plan_(std::move(plan)), pool_(plan_.host_memory), observer_(observer), visits_(visits) {}

  RunReport run();
  void stop() {
    if (stop_requested_.exchange(true)) return;  // also when a stage says so while being stopped
    const std::lock_guard lock(graph_mutex_);
    if (graph_) graph_->stop();
  }
  Progress progress() const;
  [[nodiscard]] RunSample sample() const;
  Remarks remarks() const;
  const Plan& plan() const { return plan_; }

 private:
  using Clock = std::chrono::steady_clock;
  SourceStage& source() const { return *plan_.nodes.front().faces.source; }
  void open_budget(const RunContext& run);
  void start_stages(RunContext& run);
  void execute(RunContext& run, RunReport& report);
  template <class F>
  void pass(RunContext& run, std::size_t nodes, F&& at_end);
  void fill(RunContext& run, RunReport& report);
  void settle(RunReport& report);
  void finish_stages(RunContext& run, RunReport& report);
  void account(RunReport& report, const ProcessUsage& before, Clock::time_point started,
               Clock::time_point executed) const;
  void watch_failures();
  void resume_sinks(RunContext& run);
  void ask_sinks(const std::function<void(const PlanNode&)>& ask) const;
  std::vector<std::string> warnings_so_far();

  // Before the plan, so destroyed after its stages: they may hold pieces of the run, and items.
  std::deque<Reach> reaches_;  // of the passes
  Ledger ledger_;
  std::unique_ptr<MemoryBudget> budget_;
  // Of the filling pass.
  Ledger filling_ledger_;
  std::unique_ptr<MemoryBudget> filling_budget_;
  std::size_t filling_peak_ = 0;  // with what it kept [bytes]
  std::exception_ptr filling_error_;
  std::atomic<bool> is_filling_{false};
  Plan plan_;
  BufferPool pool_;
  RunObserver* const observer_;
  VisitLog* const visits_;
  std::size_t index_bytes_ = 0;
  std::size_t kept_bytes_ = 0;   // by stages, beside the items
  std::size_t reserve_ = 0;      // of the budget for the oldest item [bytes]
  std::size_t keep_memory_ = 0;  // Filling::memory
  std::mutex warnings_mutex_;    // a mutex of its own: a stop() may make a stage warn
  std::vector<std::string> warnings_;
  std::atomic<bool> stop_requested_{false};
  // How many files may fail, in the whole run or in one node.
  struct FailureLimit {
    std::string node;  // "": in any
    CountOrShare most;
    double allowed = 0;  // `most` of the files found
    std::atomic<std::size_t> failed{0};
  };
  std::deque<FailureLimit> failure_limits_;
  std::atomic<const FailureLimit*> exceeded_{nullptr};
  bool began_with_too_many_ = false;  // of a run that this one resumes, or of parts that it merges
  bool keeps_what_is_done_ = false;   // although the run failed
  std::atomic<Clock::time_point> began_{Clock::now()};
  mutable std::mutex graph_mutex_;  // guards its coming and going
  std::unique_ptr<TaskGraph> graph_;
  Workers* workers_ = nullptr;  // during execute()
};

void Runner::Impl::open_budget(const RunContext& run) {
  const auto mebibytes = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  index_bytes_ = source().index_bytes();
  std::string keeps;
  for (const PlanNode& n : plan_.nodes) {
    if (n.faces.keeps == nullptr) continue;
    const std::size_t bytes = n.faces.keeps->kept_memory(run, n.concurrency);
    kept_bytes_ += bytes;
    if (bytes > 0)
      keeps += fmt::format(", {} keeps {:.1f} MiB with concurrency: {}", n.name, mebibytes(bytes),
                           n.concurrency);
  }
  std::string largest;
  if (index_bytes_ + kept_bytes_ + plan_.least_memory > plan_.host_memory && source().count() > 0)
    largest = fmt::format(" (for {})", excerpt(source().name(fit_to_items(plan_))));
  const std::size_t need = index_bytes_ + kept_bytes_ + plan_.least_memory;
  if (need > plan_.host_memory)
    throw RunError(fmt::format(
        "memory.host: {} is too little: the index of {} files takes {:.1f} MiB{}, and what is "
        "between source and sinks {:.1f} MiB at least{}; set {:.0f}MiB, or make blocks smaller",
        Bytes{plan_.host_memory}, source().count(), mebibytes(index_bytes_), keeps,
        mebibytes(plan_.least_memory), largest, mebibytes(need) + 1));
  const std::size_t room = plan_.host_memory - index_bytes_ - kept_bytes_;
  // One block more than it needs at least, so that stages still overlap for the oldest file.
  const std::size_t reserve = plan_.least_memory + plan_.largest_block;
  reserve_ = std::min(reserve, room);
  // Leaves room for a block for every worker; otherwise only one file at a time would be processed.
  const std::size_t working =
      reserve_ + std::min(static_cast<std::size_t>(plan_.workers) * plan_.largest_block, room / 4);
  keep_memory_ = room - std::min(room, working);
  budget_ = std::make_unique<MemoryBudget>(room, reserve_, plan_.least_for_parts);
}

void Runner::Impl::start_stages(RunContext& run) {
  for (const PlanNode& n : plan_.nodes)
    if (n.faces.resumes != nullptr) n.faces.resumes->announce(run);
  ask_sinks([&](const PlanNode& n) {
    if (n.faces.resumes != nullptr) n.faces.resumes->look(run);
  });
  source().start(run);
  open_budget(run);
  run.budget = budget_.get();
  std::vector<std::string> names;
  for (const PlanNode& n : plan_.nodes) names.push_back(n.name);
  ledger_.open(source().count(), std::move(names));
  watch_failures();
  for (PlanNode& n : plan_.nodes)
    if (!n.inputs.empty()) n.stage->start(run);
  resume_sinks(run);
  began_with_too_many_ = exceeded_ != nullptr;
}

// Where several outputs refuse the run, all of them are named, so that one is not found after the
// other.
void Runner::Impl::ask_sinks(const std::function<void(const PlanNode&)>& ask) const {
  std::vector<std::string> refusals;
  for (const PlanNode& n : plan_.nodes) try {
      ask(n);
    } catch (const RunError& e) {
      if (std::find(refusals.begin(), refusals.end(), e.what()) == refusals.end())
        refusals.emplace_back(e.what());
    }
  if (!refusals.empty()) throw RunError(fmt::format("{}", fmt::join(refusals, "\n")));
}

// All sinks resume at the same item, the first that one of them lacks.
void Runner::Impl::resume_sinks(RunContext& run) {
  std::optional<std::size_t> done;
  bool can_all = true;
  ask_sinks([&](const PlanNode& n) {
    if (n.faces.resumes == nullptr) {
      can_all = can_all && n.info->traits.kind != StageKind::sink;
    } else if (const auto of_sink = n.faces.resumes->resumable(run)) {
      done = std::min(done.value_or(*of_sink), *of_sink);
    }
  });
  for (const PlanNode& n : plan_.nodes)
    if (n.faces.resumes != nullptr) n.faces.resumes->begin(run, can_all ? done.value_or(0) : 0);
}

void Runner::Impl::watch_failures() {
  const std::size_t found = ledger_.counts().found;
  const auto add = [&](const std::string& node, const CountOrShare& most) {
    if (!most.is_set()) return;
    FailureLimit& limit = failure_limits_.emplace_back();
    limit.node = node;
    limit.most = most;
    limit.allowed =
        most.count ? static_cast<double>(*most.count) : *most.share * static_cast<double>(found);
  };
  add("", plan_.max_failures);
  for (const PlanNode& n : plan_.nodes) add(n.name, n.max_failures);
  if (failure_limits_.empty()) return;
  const auto closed = [this](std::size_t index, Outcome outcome) {
    if (outcome != Outcome::failed) return;
    for (FailureLimit& limit : failure_limits_) {
      if (!limit.node.empty() && ledger_.entry(index).stage != limit.node) continue;
      const FailureLimit* none = nullptr;
      // Without a lock: the graph outlives every stream. pass() checks what was exceeded before it.
      if (static_cast<double>(++limit.failed) > limit.allowed &&
          exceeded_.compare_exchange_strong(none, &limit) && graph_)
        graph_->stop();
    }
  };
  for (std::size_t i = 0; i < found; ++i) closed(i, ledger_.outcome(i));
  ledger_.subscribe(closed);
}

void Runner::Impl::execute(RunContext& run, RunReport& report) {
  Workers workers(plan_.workers);
  workers_ = &workers;
  workers.execute([&] {
    fill(run, report);
    pass(run, plan_.nodes.size(), [&] {
      graph_->fill(report);
      // One sink may hold a lost record for which another waits, which must not drop the records
      // after it: so all release what is lost before any drops what waits.
      for (PlanNode& n : plan_.nodes)
        if (n.faces.holds != nullptr) n.faces.holds->drop_lost();
      for (PlanNode& n : plan_.nodes)
        if (n.faces.holds != nullptr) n.faces.holds->drop_waiting();
      settle(report);
    });
  });
  report.workers = workers.count();
  if (workers.count() < plan_.workers)
    report.warnings.push_back(few_threads_text(workers.count(), plan_.workers, "workers"));
}

// Runs the first `nodes` nodes until all of them have ended.
template <class F>
void Runner::Impl::pass(RunContext& run, std::size_t nodes, F&& at_end) {
  {
    const std::lock_guard lock(graph_mutex_);
    graph_ = std::make_unique<TaskGraph>(
        plan_, run, reaches_.emplace_back(plan_reach(plan_, nodes)), observer_, visits_);
    run.budget->on_release([this] { graph_->memory_freed(); });
  }
  if (stop_requested_ || exceeded_ != nullptr) graph_->stop();
  if (filling_error_) graph_->abort(filling_error_);
  // After the threads that the stages need.
  workers_->start_threads();
  graph_->run();
  run.budget->on_release({});
  at_end();
  const std::lock_guard lock(graph_mutex_);
  graph_.reset();
}

// The filling pass, if a stage asks for one. What it keeps is taken from the budget of the run;
// items under way meanwhile get the rest.
void Runner::Impl::fill(RunContext& run, RunReport& report) {
  Filling filling{.memory = keep_memory_, .end = [this] { graph_->stop(); }};
  const auto asked =
      std::find_if(plan_.nodes.begin(), plan_.nodes.end(), [&filling](const PlanNode& n) {
        return n.faces.filling != nullptr && n.faces.filling->begin_filling(filling);
      });
  if (asked == plan_.nodes.end()) return;
  const auto nodes = static_cast<std::size_t>(asked - plan_.nodes.begin()) + 1;
  const auto began = Clock::now();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes; ++i) names.push_back(plan_.nodes[i].name);
  const std::size_t found = source().count();
  filling_ledger_.open(found, std::move(names));
  if (ledger_.counts().closed() > 0)  // records that the main run skips
    for (std::size_t i = 0; i < found; ++i)
      if (ledger_.outcome(i) != Outcome::open) filling_ledger_.close(i, Outcome::not_run, -1, "");
  filling_budget_ = std::make_unique<MemoryBudget>(budget_->capacity() - keep_memory_, reserve_);
  RunContext first{.pool = run.pool,
                   .ledger = filling_ledger_,
                   .settings = run.settings,
                   .source = run.source,
                   .services = run.services,
                   .budget = filling_budget_.get(),
                   .workers = run.workers,
                   .warn = run.warn};
  is_filling_ = true;
  pass(first, nodes, [&] { filling_error_ = graph_->error(); });
  is_filling_ = false;
  asked->faces.filling->filled(run);
  filling_peak_ = filling_budget_->peak() + budget_->used();
  report.filling_seconds = std::chrono::duration<double>(Clock::now() - began).count();
}

// Closes the records of items that were never begun, and sets how the run ended, before the sinks
// finish.
void Runner::Impl::settle(RunReport& report) {
  const std::size_t found = source().count();
  for (std::size_t i = graph_->admitted(); i < found; ++i)
    if (ledger_.outcome(i) == Outcome::open) ledger_.close(i, Outcome::not_run, -1, "");
  const Ledger::Counts c = ledger_.counts();
  if (c.not_run > 0) report.ending = Ending::stopped;
  if (const FailureLimit* limit = exceeded_) {
    const std::string option = limit->node.empty() ? "max_failures" : limit->node + ".max_failures";
    // As in a stopped run, the sinks keep what is done, with the list of failures.
    report.ending = Ending::failed;
    keeps_what_is_done_ = true;
    report.error = fmt::format(
        "{} of {} files {}{}, more than {} ({}) allows; {}; raise {} and run it again, or fix or "
        "exclude the files first, and all that comes after the first of them is computed again",
        limit->failed.load(), c.found, began_with_too_many_ ? "had failed already" : "failed",
        limit->node.empty() ? "" : " in " + limit->node, option,
        OptionType<CountOrShare>::echo(limit->most).text(),
        began_with_too_many_ ? "nothing more was computed" : "the run was stopped", option);
  } else if (report.ending == Ending::complete && c.ok == 0 && c.found > 0 &&
             !plan_.settings.is_part) {
    // An error of the run (a disk, an option): no output may be replaced.
    report.ending = Ending::failed;
    report.error = fmt::format("{}; nothing is written, and an existing output stays as it was",
                               nothing_ok_text(ledger_, found));
  }
  for (const Ledger* ledger : {&ledger_, &filling_ledger_})
    if (const auto file = ledger->closed_wrongly()) {
      report.ending = Ending::failed;
      keeps_what_is_done_ = false;
      report.error = fmt::format("{}: was accounted for twice (a bug in melflow)",
                                 *file < found ? source().name(*file) : std::to_string(*file));
    }
  if (const auto error = graph_->error()) {
    report.ending = Ending::failed;
    keeps_what_is_done_ = false;
    try {
      std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
      report.error = "out of memory; lower memory.host, or the concurrency of nodes";
    } catch (const std::exception& e) {
      report.error = e.what();
    }
  }
}

void Runner::Impl::finish_stages(RunContext& run, RunReport& report) {
  for (const auto& node : plan_.nodes) {
    try {
      node.stage->finish(run, keeps_what_is_done_ ? Ending::stopped : report.ending);
    } catch (const std::exception& e) {
      report.ending = Ending::failed;
      const bool no_memory = dynamic_cast<const std::bad_alloc*>(&e) != nullptr;
      if (report.error.empty())
        report.error = no_memory ? node.name + ": out of memory; lower memory.host" : e.what();
    }
  }
  // After all calls of finish(), since some outputs are complete only when all are.
  for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
    const Stage& stage = *plan_.nodes[i].stage;
    report.stages[i].summary = stage.summary();
    if (const std::string text = stage.not_kept(); !text.empty())
      report.warnings.push_back(plan_.nodes[i].name + "." + text);
  }
}

std::vector<std::string> Runner::Impl::warnings_so_far() {
  const std::lock_guard lock(warnings_mutex_);
  const std::size_t told = plan_.warnings.size();
  std::vector<std::string> out;
  for (std::size_t i = 0; i + plan_.machine_warnings < told; ++i)
    out.push_back(plan_.warnings[i].message);
  out.insert(out.end(), warnings_.begin() + static_cast<std::ptrdiff_t>(told), warnings_.end());
  return out;
}

// Adds the work that a stage had done by other processes to the stage's own and to the run's.
void add_other_processes(RunReport& report) {
  for (StageReport& s : report.stages)
    for (const auto& [name, calls] : s.summary) {
      const auto seconds = [&calls](const char* key) {
        const Value* value = calls.find(key);
        double out = 0;
        return value != nullptr && detail::parse_number(*value, out).empty() ? out : 0;
      };
      if (name != "calls") continue;
      s.cpu_seconds += seconds("cpu_seconds");
      report.graph_cpu_seconds += seconds("cpu_seconds");
      report.usage.user_seconds += seconds("cpu_seconds");
      report.core_wait_seconds += seconds("core_wait_seconds");
    }
}

// Where the time outside of the graph went, and what the whole process used of the machine.
void Runner::Impl::account(RunReport& report, const ProcessUsage& before, Clock::time_point started,
                           Clock::time_point executed) const {
  const auto span = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  const Clock::time_point now = Clock::now();
  report.began = began_.load();
  report.wall_seconds = span(now - began_.load());
  report.start_seconds = span(started - began_.load());
  report.finish_seconds = span(now - executed);
  if (report.first_row_seconds > 0)
    report.first_row_seconds += report.start_seconds + report.filling_seconds;
  report.usage = process_usage() - before;
  add_other_processes(report);
  report.cores = available_cpus();
  name_slowest(report, [this](std::size_t i) { return source().name(i); });
}

RunReport Runner::Impl::run() {
  began_ = Clock::now();
  const ProcessUsage before = process_usage();
  RunReport report;
  RunContext context{
      .pool = pool_,
      .ledger = ledger_,
      .settings = plan_.settings,
      .source = source(),
      .services = plan_.services,
      .workers = plan_.workers,
      .warn =
          [this](std::string text) {
            text = kept_text(std::move(text));
            const std::lock_guard lock(warnings_mutex_);
            if (std::find(warnings_.begin(), warnings_.end(), text) == warnings_.end())
              warnings_.push_back(std::move(text));
          },
      .warnings = [this] { return warnings_so_far(); },
      .stop_requested = &stop_requested_};
  for (const Problem& w : plan_.warnings) warnings_.push_back(w.str());  // before all others
  start_stages(context);
  report.kept = ledger_.counts().ok;
  const Clock::time_point started = Clock::now();
  execute(context, report);
  const Clock::time_point executed = Clock::now();
  finish_stages(context, report);

  account(report, before, started, executed);
  report.counts = ledger_.counts();
  report.memory_budget = plan_.host_memory;
  report.memory_index = index_bytes_;
  report.memory_peak = index_bytes_ + kept_bytes_ + std::max(budget_->peak(), filling_peak_);
  report.resident_peak = peak_resident_bytes();
  // Warnings that only the report has, such as about the number of threads, come last.
  report.warnings.insert(report.warnings.begin(), warnings_.begin(), warnings_.end());
  check_accounts(report);
  return report;
}

Progress Runner::Impl::progress() const {
  Progress p;
  p.is_filling = is_filling_;
  p.counts = p.is_filling ? filling_ledger_.counts() : ledger_.counts();
  p.seconds = std::chrono::duration<double>(Clock::now() - began_.load()).count();
  const std::lock_guard lock(graph_mutex_);
  if (graph_) {
    p.rows = graph_->rows_taken();
    p.bytes = graph_->bytes_read();
  }
  return p;
}

RunSample Runner::Impl::sample() const {
  RunSample s;
  s.seconds = std::chrono::duration<double>(Clock::now() - began_.load()).count();
  const std::lock_guard lock(graph_mutex_);
  if (!graph_ || is_filling_) return s;
  s.files = ledger_.counts().closed();
  s.rows = graph_->rows_taken();
  s.bytes_read = graph_->bytes_read();
  s.reserved = index_bytes_ + kept_bytes_ + budget_->used();
  const Clock::time_point now = Clock::now();
  for (const auto& node : graph_->nodes()) {
    const NodeQueue::Snapshot at = node->queue().snapshot(now);
    s.nodes.push_back({at.waiting, at.time});
  }
  return s;
}

Remarks Runner::Impl::remarks() const {
  std::vector<std::size_t> items;
  const Ledger::Counts all = ledger_.counts();
  for (std::size_t i = 0; i < all.found; ++i) {
    const Outcome outcome = ledger_.outcome(i);
    if (outcome == Outcome::ok && all.warned == 0) continue;
    if ((outcome == Outcome::not_run || outcome == Outcome::ok) && ledger_.entry(i).reason.empty())
      continue;
    items.push_back(i);
  }
  return {std::move(items), [this](std::size_t i) {
            return Remark{i, source().name(i), ledger_.entry(i)};
          }};
}

Runner::Runner(Plan plan, RunObserver* observer, VisitLog* visits)
    : impl_(std::make_unique<Impl>(std::move(plan), observer, visits)) {}
Runner::~Runner() = default;
RunReport Runner::run() { return impl_->run(); }
void Runner::stop() { impl_->stop(); }
Progress Runner::progress() const { return impl_->progress(); }
RunSample Runner::sample() const { return impl_->sample(); }
Remarks Runner::remarks() const { return impl_->remarks(); }
const Plan& Runner::plan() const { return impl_->plan(); }

}  // namespace melflow
