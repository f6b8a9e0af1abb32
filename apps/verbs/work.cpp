// melflow work: computes parts of a job until none is left.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/console.h"
#include "apps/exit_codes.h"
#include "apps/job/checked_json.h"
#include "apps/job/claims.h"
#include "apps/job/job.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/signals.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/verbs.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/threads.h"
#include "pipeline/run/runner.h"
#include "stages/corpus/frozen_corpus.h"
#include "stages/files/content_hash.h"
#include "stages/files/own_file.h"
#include "stages/files/whole_io.h"
#include "stages/output/part_sink.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

using Clock = std::chrono::steady_clock;

struct WorkOptions {
  std::optional<int> workers;  ///< threads
  double stop_after = 0;       ///< [s]; 0: never
  double patience = 60;        ///< [s]; a worker with a constant heartbeat is gone after this time
  StoredOverrides stored;
  bool quiet = false;
};

struct Worked {
  std::size_t made = 0, failed = 0;  ///< parts that this worker computed
  bool is_stopped = false;           ///< whether it ended early
};

class Worker {
 public:
  Worker(const Job& job, const WorkOptions& options)
      : job_(job),
        options_(options),
        signals_([this] { stop(); }, [] {}),
        sign_(job),
        claims_(job, sign_.id(), Claims::Seconds(options.patience)) {
    sign_.give({});
    if (!add_thread(beating_, "heartbeat", [this] { beat(); }))
      throw RunError(no_thread_text("heartbeats"));
  }
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : beating_) thread.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Worked run();

 private:
  void beat();
  void stop();
  [[nodiscard]] bool is_stopping() const { return is_stopping_; }
  [[nodiscard]] bool is_done(std::size_t part) const;
  void make(std::size_t part, const Claims::Taken& taken);
  RunReport compute(std::size_t part, const std::string& path, const std::string& before,
                    PartRecord& record);
  void publish(std::size_t part, const std::string& path, PartRecord record);
  void note_failure(std::size_t part, const std::string& why);
  void wait_for_others();
  [[nodiscard]] Claims::Seconds pause() const {
    return Claims::Seconds(std::clamp(options_.patience / 4, 0.05, 5.0));
  }

  const Job& job_;
  const WorkOptions options_;
  std::atomic<bool> is_stopping_{false};
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  bool is_over_ = false;
  Runner* runner_ = nullptr;
  std::size_t part_ = 0;
  StopOnSignal signals_;  // created before the first thread
  WorkerSign sign_;
  Claims claims_;
  const Clock::time_point began_ = Clock::now();
  std::set<std::size_t> done_, failed_;
  static constexpr Claims::Seconds kFirstWait{0.05};
  Claims::Seconds waited_ = kFirstWait;  // until the next look at other workers
  std::size_t made_ = 0;
  std::vector<std::thread> beating_;  // one
};

void Worker::stop() {
  is_stopping_ = true;
  const std::lock_guard lock(mutex_);
  if (runner_ != nullptr) runner_->stop();
  changed_.notify_all();
}

// Sends heartbeats and enforces the time limit.
void Worker::beat() {
  std::unique_lock lock(mutex_);
  const auto limit = Claims::Seconds(options_.stop_after);
  while (!is_over_) {
    std::optional<WorkerSign::At> at;
    if (runner_ != nullptr) {
      const Ledger::Counts counts = runner_->progress().counts;
      at = {part_, counts.closed(), counts.found};
    }
    lock.unlock();
    sign_.give(at);
    if (options_.stop_after > 0 && !is_stopping_ && Clock::now() - began_ >= limit) stop();
    lock.lock();
    auto next = pause();
    if (options_.stop_after > 0 && !is_stopping_)
      next = std::max(Claims::Seconds(0.001),
                      std::min<Claims::Seconds>(next, began_ + limit - Clock::now()));
    changed_.wait_for(lock, next, [this] { return is_over_; });
  }
}

// A damaged part is computed again.
bool Worker::is_done(std::size_t part) const {
  std::optional<PartRecord> record;
  try {
    record = PartRecord::read(job_, part);
  } catch (const RunError&) {
    return false;
  }
  struct stat st {};
  return record && ::stat(job_.part_path(part).c_str(), &st) == 0 &&
         static_cast<std::uint64_t>(st.st_size) == record->bytes;
}

Worked Worker::run() {
  while (!is_stopping()) {
    bool has_made = false, waits = false;
    for (std::size_t part = 0; part < job_.parts.size() && !is_stopping(); ++part) {
      if (done_.contains(part) || failed_.contains(part)) continue;
      if (is_done(part)) {
        claims_.forget(part);
        done_.insert(part);
        continue;
      }
      const auto taken = claims_.take(part);
      if (!taken) {
        waits = true;
        continue;
      }
      make(part, *taken);
      has_made = true;
    }
    if (has_made) waited_ = kFirstWait;
    if (has_made || is_stopping()) continue;
    if (!waits) break;
    wait_for_others();
  }
  return {made_, failed_.size(), is_stopping()};
}

void Worker::wait_for_others() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, waited_, [this] { return is_stopping(); });
  waited_ = std::min(2 * waited_, pause());
}

void Worker::make(std::size_t part, const Claims::Taken& taken) {
  const std::string& work = taken.work;
  const auto path_of = [this](const std::string& name) { return job_.in("work/" + name + ".h5"); };
  const std::string path = path_of(work);
  const std::string before = taken.before.empty() ? "" : path_of(taken.before);
  for (const std::string& file : {path, before})
    if (std::error_code ignored; std::filesystem::is_symlink(file, ignored))
      throw RunError(file +
                     ": is a link, and the part would be written to where it leads; remove it");
  try {
    PartRecord record;
    const RunReport report = compute(part, path, before, record);
    if (report.ending == Ending::stopped) return claims_.leave(part, work);
    if (report.ending == Ending::failed) {
      note_failure(part, report.error);
      return claims_.leave(part, work);
    }
    publish(part, path, std::move(record));
    claims_.give_up(part);
  } catch (...) {
    claims_.leave(part, work);
    throw;
  }
}

// Ends the program where a decoder hangs.
void leave(const std::string& why) {
  complain(why);
  _exit(kStopped);
}

RunReport Worker::compute(std::size_t part, const std::string& path, const std::string& before,
                          PartRecord& record) {
  Plan plan = job_.load(options_.stored.load_options(options_.workers));
  plan.settings.is_part = true;
  plan.allow_failures();  // applies to all parts together, so merging checks it
  const PartSink& sink =
      PartSink::replace(plan, job_.sink, {.path = path, .row_facts = job_.row_facts});
  const ManifestRange range = job_.parts[part];
  set_task(
      plan.services,
      {.corpus = std::make_shared<FrozenCorpus>(read_manifest(job_.in(kJobManifest), {&range, 1})),
       .resume = {Resume::When::automatic,
                  [this](const std::string& text) {
                    if (!options_.quiet) say(stderr, "{}\n", text);
                  },
                  console() == nullptr ? leave : nullptr, before}});
  Runner runner(std::move(plan));
  const auto is_at = [&](Runner* now) {
    const std::lock_guard lock(mutex_);
    runner_ = now;
    part_ = part;
  };
  is_at(&runner);
  struct Leaves {
    const decltype(is_at)& at;
    ~Leaves() { at(nullptr); }
  } const leaves{is_at};
  if (is_stopping()) runner.stop();
  RunReport report = runner.run();
  record.ok = report.counts.ok;
  record.skipped = report.counts.skipped;
  record.failed = report.counts.failed;
  record.seconds = report.wall_seconds;
  if (report.ending != Ending::complete) return report;
  record.rows = sink.rows();
  if (const auto sums = sink.sums()) record.sums = sums->text();
  return report;
}

void Worker::publish(std::size_t part, const std::string& path, PartRecord record) {
  const UniqueFd fd = open_regular(path, record.bytes);
  record.hash = content_hash(fd.get());
  if (record.hash == 0)
    throw RunError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  record.worker = sign_.id();
  if (const int error = rename_file(path, job_.part_path(part), 0); error != 0)
    throw RunError(fmt::format("{}: cannot get its name {}: {}", path, job_.part_path(part),
                               std::strerror(error)));
  record.write(job_, part);
  ::unlink(job_.failed_path(part).c_str());
  done_.insert(part);
  ++made_;
  if (!options_.quiet)
    say(stdout, "part {} of {}: {}, {} rows, {}\n", job_.name(part), job_.parts.size(),
        plural(job_.parts[part].end - job_.parts[part].first, "file"),
        count_text(static_cast<std::size_t>(record.rows)), seconds_text(record.seconds));
}

void Worker::note_failure(std::size_t part, const std::string& why) {
  failed_.insert(part);
  complain(fmt::format("part {}: {}", job_.name(part), why));
  try {
    write_checked(job_.failed_path(part), {{"part", part}, {"worker", sign_.id()}, {"error", why}},
                  sign_.id());
  } catch (const RunError&) {  // perhaps because of the failing disk
  }
}

// Throws RunError when this program would produce other bytes than planned.
Worked work_on(const Job& job, const WorkOptions& options) { return Worker(job, options).run(); }

struct WorkArguments {
  std::string folder;
  WorkOptions options;
};

int work(const WorkArguments& arguments) {
  const Job job = Job::read(arguments.folder);
  job.enter_working_folder();
  const Worked worked = work_on(job, arguments.options);
  if (!arguments.options.quiet)
    say(stdout, "{}: {} made by this worker\n", job.folder, plural(worked.made, "part"));
  if (worked.failed > 0) {
    complain(fmt::format("{} failed; fix what is said above, and `melflow work {}` tries again",
                         plural(worked.failed, "part"), job.folder));
    return kRunFailed;
  }
  if (!worked.is_stopped) return kDone;
  complain("stopped before the end; the same command goes on from there");
  return kStopped;
}

}  // namespace

Action add_work(CLI::App& verb) {
  auto arguments = std::make_shared<WorkArguments>();
  verb.add_option("JOB", arguments->folder, "the folder of a job")->required();
  add_workers(verb, arguments->options.workers);
  arguments->options.stored.add_to(verb);
  add_time(verb, "--stop-after", arguments->options.stop_after,
           "starts no new files after this time (90s, 30m, 11h50m), and then ends as after Ctrl-C; "
           "for machines with a time limit");
  add_time(verb, "--patience", arguments->options.patience,
           "how long another worker may show no heartbeat before its part is started again "
           "(default 60s)");
  verb.add_flag("-q,--quiet", arguments->options.quiet, "prints only what failed");
  verb.footer(
      "Takes parts that nobody is working on until all are done, and waits for other workers "
      "meanwhile. A worker\nthat is killed loses only the part that it was working on. Ctrl-C, "
      "SIGTERM and --stop-after leave what is done for the next worker.\n"
      "Exit status: 0 all parts are done, 1 some failed, 75 stopped.\n"
      "\n"
      "Example:\n"
      "  melflow work job --stop-after 11h50m");
  return [arguments] { return work(*arguments); };
}

}  // namespace melflow
