#include "apps/verbs/watch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "apps/exit_codes.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/signals.h"
#include "apps/verbs/dry_run.h"
#include "stages/containers/container.h"
#include "stages/files/own_file.h"
#include "stages/manifest.h"

namespace melflow {
namespace {

// Waits; a signal ends that and sets `interrupted`.
void wait(double seconds, std::atomic<bool>& interrupted) {
  std::mutex mutex;
  std::condition_variable changed;
  const StopOnSignal signals(
      [&] {
        const std::lock_guard lock(mutex);
        interrupted = true;
        changed.notify_all();
      },
      [] {});
  std::unique_lock lock(mutex);
  changed.wait_for(lock, std::chrono::duration<double>(seconds),
                   [&] { return interrupted.load(); });
}

// The files that an update would compute.
using ToCompute = std::map<std::string, FileStamp>;

// The findings of a dry run. It holds no file of the output, which the update itself has to lock.
struct Look {
  ToCompute files;
  std::size_t drops = 0;    // the files that an update would drop
  std::string refusal;      // why an update is refused; "": it is not
  bool is_planned = false;  // whether the plan refuses, as the update itself would
};

ToCompute to_compute(const DryRun& dry) {
  ToCompute out;
  const auto* source = dynamic_cast<const ManifestSource*>(&dry.source());
  if (source == nullptr) return out;
  for (const RowPlan& plan : dry.plans)
    each_computed(plan, [&](std::size_t file, PlannedRange::Found) {
      out[dry.source().name(file)] = stamp_of(source->manifest().path(file));
    });
  return out;
}

Look look(Plan plan, std::atomic<bool>& interrupted) {
  const DryRun dry = dry_run(
      std::move(plan),
      {.progress = ProgressDisplay::Mode::none, .quiet = true, .interrupted = &interrupted});
  return {.files = to_compute(dry),
          .drops = std::accumulate(
              dry.plans.begin(), dry.plans.end(), std::size_t{0},
              [](std::size_t sum, const RowPlan& p) { return sum + p.dropped.count; }),
          .refusal = dry.problem(),
          .is_planned = dry.report.ending != Ending::failed};
}

}  // namespace

int watch_and_update(const PlanArguments& arguments, Update how, double still,
                     const UpdateOnce& update) {
  const HeldSignals held;  // between its runs, too
  std::atomic<bool> interrupted{false};
  const auto whole = std::make_shared<WholeFiles>(WholeFiles::Seconds(still));
  const auto look = [&]() -> Look {
    try {
      Plan plan = arguments.load();
      set_task(plan.services, {.whole = whole, .update = how});
      return melflow::look(std::move(plan), interrupted);
    } catch (const std::runtime_error& e) {
      return {.files = {}, .refusal = e.what()};
    }
  };
  ToCompute tried;            // the last update's files; those that failed wait until they change
  std::size_t dropped = 0;    // that the last update should have dropped, and may have had to keep
  std::string refused, said;  // by the last look; the last that was said
  say(stderr, "{}: updates when new files have not changed for {}; Ctrl-C ends\n", arguments.file,
      seconds_text(still));
  for (bool is_first = true; !interrupted; is_first = false) {
    Look found = look();
    if (interrupted) break;
    std::erase_if(tried, [&](const auto& file) { return !found.files.contains(file.first); });
    const bool has_news = std::any_of(found.files.begin(), found.files.end(), [&](const auto& f) {
      const auto before = tried.find(f.first);
      return before == tried.end() || before->second != f.second;
    });
    const bool is_newly_refused = found.refusal != std::exchange(refused, found.refusal);
    std::string why = found.refusal;
    // A dry run does not complete what an interrupted update began; an update does.
    if (found.drops == 0) dropped = 0;
    if (why.empty() ? has_news || found.drops != dropped : is_newly_refused && !found.is_planned) {
      try {
        const int code = update(whole, interrupted);
        if (code != kDone && code != kSomeFailed) return code;
        tried = std::move(found.files);
        dropped = found.drops;
        why.clear();
      } catch (const InUseError& e) {
        why = e.what();
      } catch (const std::runtime_error& e) {
        if (is_first) throw;
        why = e.what();
      }
    } else if (!why.empty() && !is_newly_refused) {
      why = said;
    }
    if (!why.empty() && why != said) {
      complain(why);
      say(stderr, "{}: waits until that has changed; Ctrl-C ends\n", arguments.file);
    }
    said = why;
    if (!interrupted) wait(still, interrupted);
  }
  return kDone;
}

}  // namespace melflow
