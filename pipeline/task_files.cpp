#include "pipeline/task_files.h"

#include "pipeline/task_graph.h"

namespace melflow {

TaskFiles::TaskFiles(TaskGraph& graph)
    : graph_(graph),
      source_(graph.context().source),
      total_(source_.source_count()),
      some_are_done_(graph.context().ledger.counts().closed() > 0) {
  skip_done();
}

void TaskFiles::skip_done() {
  const Ledger& ledger = graph_.context().ledger;
  while (some_are_done_ && next_ < total_ && ledger.outcome(next_) != Outcome::open) ++next_;
  if (next_ >= total_) is_exhausted_ = true;
}

void TaskFiles::make(Work& work) {
  if (next_ >= total_) return;
  work.index = next_;
  AnyStage::SourceItem made = source_.source_item(next_);
  const std::size_t cost = admission_cost(graph_.plan(), made.info);
  work.costs.push_back(cost);
  work.cost += cost;
  work.out.push_back({nullptr, std::move(made.payload), made.info.bytes, 0});
  ++next_;
  skip_done();
}

}  // namespace melflow
