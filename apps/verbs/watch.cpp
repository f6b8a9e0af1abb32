#include "apps/verbs/watch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "apps/exit_codes.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/signals.h"
#include "apps/verbs/dry_run.h"
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

// The files that an update would compute, with the stamps of those that an earlier one could not
// compute: these are tried again when they change.
using ToCompute = std::map<std::string, std::optional<FileStamp>>;

ToCompute to_compute(const DryRun& dry) {
  using Found = PlannedRange::Found;
  ToCompute out;
  const auto* source = dynamic_cast<const ManifestSource*>(&dry.source());
  if (source == nullptr) return out;
  for (const RowPlan& plan : dry.plans)
    each_computed(plan, [&](std::size_t file, Found found) {
      const bool was_tried = found == Found::failed_before || found == Found::skipped_before ||
                             found == Found::not_run_before;
      out[dry.source().name(file)] =
          was_tried ? std::optional(stamp_of(source->manifest().path(file))) : std::nullopt;
    });
  return out;
}

}  // namespace

int watch_and_update(const PlanArguments& arguments, Update how, double still,
                     const UpdateOnce& update) {
  const HeldSignals held;  // between its runs, too
  std::atomic<bool> interrupted{false};
  const auto whole = std::make_shared<WholeFiles>(WholeFiles::Seconds(still));
  const auto look = [&] {
    Plan plan = arguments.load();
    set_task(plan.services, {.whole = whole, .update = how});
    return dry_run(
        std::move(plan),
        {.progress = ProgressDisplay::Mode::none, .quiet = true, .interrupted = &interrupted});
  };
  ToCompute tried;
  say(stderr, "{}: updates when new files have not changed for {}; Ctrl-C ends\n", arguments.file,
      seconds_text(still));
  for (bool is_first = true; !interrupted; is_first = false) {
    const DryRun dry = look();
    if (interrupted) break;
    const bool is_refused = !dry.problem().empty();
    if (is_refused && !is_first) return dry.print(nullptr);
    const ToCompute files = to_compute(dry);
    const bool has_news = std::any_of(files.begin(), files.end(), [&](const auto& file) {
      const auto before = tried.find(file.first);
      return !file.second || before == tried.end() || before->second != file.second;
    });
    const bool drops = std::any_of(dry.plans.begin(), dry.plans.end(),
                                   [](const RowPlan& plan) { return plan.dropped.count > 0; });
    // A dry run does not complete what an interrupted update began; an update does.
    if (has_news || drops || is_refused) {
      const int code = update(whole, interrupted);
      if (code != kDone && code != kSomeFailed) return code;
      tried = to_compute(look());
    }
    if (!interrupted) wait(still, interrupted);
  }
  return kDone;
}

}  // namespace melflow
