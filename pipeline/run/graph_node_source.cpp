// GraphNode as the source: it makes items, has them wait for memory, and sends them. Also the calls
// of the memory gate to any node.

#include <utility>

#include "pipeline/base/tsan.h"
#include "pipeline/run/graph_node.h"
#include "pipeline/run/task_graph.h"

namespace melflow {

void GraphNode::start_source() {
  cursor_ = new_work();
  if (cursor_ == nullptr) {
    end_input();
    return;
  }
  queue_.announce(Clock::now());
  resume(cursor_.get());
}

// The task keeps its tokens until there is memory for it; then the next one is made.
void GraphNode::make() {
  auto made = new_work();
  const bool measures_cpu = queue_.wants_cpu();
  const std::int64_t cpu = measures_cpu ? StageMeter::thread_cpu() : 0;
  if (!graph_.is_stopping() && made != nullptr) executor_.run(*made);
  const std::size_t files = made != nullptr ? made->progress.out.size() : 0;
  NodeQueue::Finish f;
  f.goes_on = f.gave = files > 0;
  const Clock::time_point now = Clock::now();
  cursor_->timing.cpu = measures_cpu ? StageMeter::thread_cpu() - cpu : -1;
  if (f.gave) f.visit = meter_visit(*cursor_, now, files);
  Visit visit = visit_of(*cursor_, f);
  visit.index = f.gave ? made->index : 0;
  visit.files = static_cast<std::uint32_t>(files);
  StartList list;
  visit.ended = queue_.finish(now, f, list);
  if (VisitLog* log = graph_.visits()) log->add(visit);
  start(list);
  if (f.goes_on) {
    Work* work = made.release();
    if (graph_.gate().ask(work, *this, work->made->cost)) granted(work);
    // Other workers may make the next task meanwhile.
    if (!graph_.is_stopping()) graph_.feed().prefetch(files);
  } else {
    end_input();
  }
  tsan::release(this);
}

void GraphNode::granted(Work* work) try {
  if (is_source())
    admit(std::unique_ptr<Work>(work));
  else
    graph_.resume(*this, work);
} catch (...) {
  graph_.abort(std::current_exception());
}

// The next task is made when this one has arrived at the next node, so that tasks arrive in the
// order of the source.
void GraphNode::admit(std::unique_ptr<Work> work) {
  const std::unique_ptr<Work::Made> made = std::move(work->made);
  std::size_t end = work->index;
  for (const Work::Made::One& one : made->each) end += one.records;
  graph_.admitted(end);
  Passed out;
  for (const Item& item : work->progress.out) out.add(item);
  std::shared_ptr<const Reservation> reservation = std::move(work->progress.reservation);
  work->items.swap(work->progress.out);
  work->renew();
  Stream::Records records{work->index, 0, graph_.cuts(), graph_.plan().largest_part,
                          RunClock::now()};
  for (std::size_t i = 0; i < work->items.size(); ++i, records.first += records.count) {
    Work::Made::One& one = made->each[i];
    records.count = one.records;
    auto stream = std::make_shared<Stream>(graph_.context().ledger, records, one.cost,
                                           graph_.reach(), std::move(one.bounds));
    if (const int output = work->items[i].output; output >= 0)
      leave_by(output - output_number(id_, 0), *stream);
    if (!records.is_cut) graph_.reach().keep(*stream);
    work->items[i].origins = one_origin({reservation, std::move(stream)});
  }
  reservation.reset();  // or the memory would be returned only after its files are closed
  Parcels parcels = make_parcels(std::move(work));
  std::vector<std::size_t> waiting;
  const Clock::time_point now = Clock::now();
  arrive_downstream(parcels, waiting, now);
  const bool is_last = graph_.feed().is_exhausted();
  StartList list;
  queue_.sent_on(now, out, waiting, is_last ? nullptr : cursor_.get(), list);
  start(list);
  send(parcels);
  if (is_last) end_input();
}

// If the graph has several sources: only nodes downstream of the item's own source get the stream.
void GraphNode::leave_by(int source, Stream& stream) const {
  if (graph_.reach().of(id_).outside[static_cast<std::size_t>(source)] != 0)
    stream.route(id_, {&source, 1},
                 ItemError::skipped("is of the source '" +
                                    plan_.outputs[static_cast<std::size_t>(source)] + "'"));
}

bool GraphNode::is_over(const Work& work) const {
  for (std::size_t i = work.progress.at; i < work.items.size(); ++i)
    if (!work.is_lost_to(id_, i)) return false;
  return true;
}

void GraphNode::cut_off(Work* work) try {
  const Work::Progress& progress = work->progress;
  for (std::size_t i = progress.at; i < work->items.size(); ++i)
    cancel(*work->items[i].origins, id_, i == progress.at ? progress.given : 0);
  const std::vector<const Stream*> streams = std::move(work->queued.streams);
  delete work;
  const Clock::time_point now = Clock::now();
  StartList list;
  if (is_source())
    queue_.sent_on(now, {}, {}, nullptr, list);
  else
    queue_.cut_off(now, streams, list);
  start(list);
  if (is_source()) end_input();
  try_end();
} catch (...) {
  graph_.abort(std::current_exception());
}

}  // namespace melflow
