#include "pipeline/run/task_files.h"

#include <algorithm>
#include <utility>

#include "pipeline/plan/task_memory.h"
#include "pipeline/run/task_graph.h"

namespace melflow {
namespace {

constexpr double kTaskSeconds = 100e-6;
// The source makes tasks one after the other, a few microseconds each, so many workers are kept
// busy only by longer tasks.
constexpr double kTaskSecondsPerWorker = 4e-6;

// A file of no bytes costs about as much as these [bytes].
constexpr std::size_t kWeightOfFile = 4096;

// The last tasks are small, or one worker would still be busy with its own when all others are
// done.
constexpr std::size_t kTasksLeftPerWorker = 4;

}  // namespace

std::string TaskFiles::not_kept() const {
  if (most_cut_ == 0) return {};
  const Plan& plan = graph_.plan();
  return fewer_together(plan, most_cut_, dearest_,
                        plan.host_memory - graph_.context().budget->capacity());
}

TaskFiles::TaskFiles(TaskGraph& graph)
    : graph_(graph),
      ahead_(graph.plan(), graph.context().ledger),
      total_(graph.context().source.count()),
      done_before_(graph.context().ledger.counts().closed()),
      unites_(graph.plan().sources.empty() ? nullptr : graph.plan().nodes.front().faces.unites),
      fixed_(static_cast<std::size_t>(graph.plan().nodes.front().files_per_task)),
      task_seconds_(std::max(kTaskSeconds, kTaskSecondsPerWorker * graph.plan().workers)),
      room_(task_memory(graph.plan(), graph.context().budget->capacity())) {
  skip_done();
}

void TaskFiles::skip_done() {
  const Ledger& ledger = graph_.context().ledger;
  while (done_before_ > 0 && next_ < total_ && ledger.outcome(next_) != Outcome::open) ++next_;
  if (next_ >= total_) is_exhausted_ = true;
}

void TaskFiles::make(Work& work) {
  if (next_ >= total_) return;
  if (fixed_ == 0 && made_ >= measure_at_) measure();
  const std::size_t files = most();
  std::size_t weight = 0;
  work.index = next_;
  work.out.reserve(std::min(files, last_files_));
  work.made.reserve(std::min(files, last_files_));
  // Their indices follow each other.
  std::size_t end = next_;
  while (next_ < total_ && work.out.size() < files && next_ == end) {
    MadeAhead::Made made =
        next_item_ ? *std::exchange(next_item_, std::nullopt) : ahead_.take(next_);
    const SourceItem& item = made.item;
    const std::size_t cost = made.cost;
    weight += item.info.bytes + kWeightOfFile;
    const bool fits =
        work.cost + cost <= room_ &&
        (fixed_ > 0 || static_cast<double>(weight) * seconds_per_weight_ <= task_seconds_);
    if (!work.out.empty() && !fits) {
      if (fixed_ > 0) note_cut(work.out.size(), work.cost + cost);
      next_item_ = std::move(made);
      break;
    }
    weight_ += item.info.bytes + kWeightOfFile;
    work.made.push_back({cost, item.records, std::move(made.bounds)});
    work.cost += cost;
    work.out.push_back({nullptr, std::move(made.item.payload), item.info.bytes, 0});
    if (unites_ != nullptr)
      work.out.back().output = output_number(0, static_cast<int>(unites_->source_of(next_)));
    ++made_;
    next_ = end += item.records;
    skip_done();
  }
  work.record = work.index;
  if (!work.made.empty()) work.records = work.made.front().records;
  last_files_ = work.out.size();
}

void TaskFiles::note_cut(std::size_t files, std::size_t cost) {
  most_cut_ = std::max(most_cut_, files);
  dearest_ = std::max(dearest_, cost / (files + 1));
}

std::size_t TaskFiles::most() const {
  if (fixed_ > 0) return fixed_;
  if (seconds_per_weight_ == 0) return 1;
  const std::size_t tasks = kTasksLeftPerWorker * static_cast<std::size_t>(graph_.plan().workers);
  return std::clamp<std::size_t>((total_ - next_) / tasks, 1, NodeOptions::kMostFilesOfAuto);
}

// The workers' time until now, over what has come to its end; of that only the number is known.
// What is under way makes files look dearer than they are, so the first tasks are small.
void TaskFiles::measure() {
  measure_at_ = made_ + std::max<std::size_t>(16, made_ / 8);
  const std::size_t closed = graph_.context().ledger.counts().closed() - done_before_;
  if (closed == 0) return;
  double busy = 0;
  const auto now = std::chrono::steady_clock::now();
  for (const auto& n : graph_.nodes())
    if (n->is_on_workers()) busy += n->places().snapshot(now).time.busy;
  const double share = static_cast<double>(closed) / static_cast<double>(made_);
  seconds_per_weight_ = busy / (static_cast<double>(weight_) * std::min(share, 1.0));
}

}  // namespace melflow
