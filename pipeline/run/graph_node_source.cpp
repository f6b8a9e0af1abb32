// GraphNode as the source: it makes items, has them wait for memory, and sends them. And what the
// memory gate tells any node.

#include <utility>

#include "pipeline/base/tsan.h"
#include "pipeline/run/graph_node.h"
#include "pipeline/run/task_graph.h"

namespace melflow {

void GraphNode::start() {
  cursor_ = new_work();
  if (cursor_ == nullptr) {
    end_input();
    return;
  }
  cursor_->came = Came::again;
  places_.expect(Clock::now());
  wait_again(cursor_.get());
}

// What was made keeps its places until there is memory for it; then the next is made.
void GraphNode::make() {
  auto made = new_work();
  const bool measures_cpu = meter_.wants_cpu();
  const std::int64_t cpu = measures_cpu ? StageMeter::thread_cpu() : 0;
  if (!graph_.is_stopping()) calls_.run(*made);
  NodePlaces::Finish f;
  f.goes_on = f.gave = made != nullptr && !made->out.empty();
  const Clock::time_point now = Clock::now();
  cursor_->cpu = measures_cpu ? StageMeter::thread_cpu() - cpu : -1;
  if (f.gave) note_visit(*cursor_, now, made->out.size());
  Visit visit = visit_of(*cursor_, f);
  visit.index = f.gave ? made->index : 0;
  visit.files = f.gave ? static_cast<std::uint32_t>(made->out.size()) : 0;
  let_in(places_.finish(now, f, &visit.ended));
  if (VisitLog* log = graph_.visits()) log->add(visit);
  if (f.goes_on) {
    const std::size_t files = made->out.size();
    Work* work = made.release();
    if (graph_.gate().ask(work, *this, work->cost)) granted(work);
    // Others may make the next task meanwhile.
    if (!graph_.is_stopping()) graph_.files().work_ahead(files);
  } else {
    end_input();
  }
  tsan::release(this);
}

void GraphNode::granted(Work* work) try {
  if (is_source())
    admit(work);
  else
    graph_.resume(*this, work);
} catch (...) {
  graph_.abort(std::current_exception());
}

// The next task may be made as soon as this one has its place downstream; the rest of this one is
// made meanwhile.
void GraphNode::admit(Work* work) {
  std::size_t end = work->index;
  for (const Work::Made& made : work->made) end += made.records;
  graph_.admitted(end);
  Passed out;
  for (const Item& item : work->out) out.add(item);
  std::shared_ptr<const Reservation> reservation = std::move(work->reservation);
  work->items.swap(work->out);
  work->renew();
  const Clock::time_point now = Clock::now();
  places_.note_given(out);
  std::vector<std::size_t> branches;
  bool begins = false;
  if (outputs_.empty()) {
    begins = address(*work, now);
  } else {
    branches = branches_of(work->items);
    begins = address_to(branches, false, now);
  }
  const bool is_last = graph_.files().is_exhausted();
  if (is_last)
    places_.forget(now);
  else
    wait_again(cursor_.get());
  if (!outputs_.empty())
    let_in(places_.free_places(now, begins ? std::vector<std::size_t>() : branches));
  else if (begins)
    free_place(now, 0);
  Stream::Records records{work->index, 0, graph_.cuts(), graph_.plan().largest_part};
  for (std::size_t i = 0; i < work->items.size(); ++i, records.first += records.count) {
    records.count = work->made[i].records;
    auto stream = std::make_shared<Stream>(graph_.context().ledger, records, work->made[i].cost,
                                           graph_.reach(), std::move(work->made[i].bounds));
    if (const int output = work->items[i].output; output >= 0)
      leave_by(output - output_number(id_, 0), *stream);
    if (!records.is_cut) graph_.reach().keep(*stream);
    work->items[i].origins = one_origin({reservation, std::move(stream)});
  }
  reservation.reset();  // or it would come back after its files
  if (outputs_.empty())
    send(work, now);
  else
    send_to(branches, by_output(std::unique_ptr<Work>(work), branches), begins, now);
  if (is_last) end_input();
}

// Of several sources, that one's.
void GraphNode::leave_by(int source, Stream& stream) const {
  if (graph_.reach().of(id_).outside[static_cast<std::size_t>(source)] != 0)
    stream.route(id_, source,
                 ItemError::skipped("is of the source '" +
                                    plan_.outputs[static_cast<std::size_t>(source)] + "'"));
}

bool GraphNode::is_over(const Work& work) const {
  for (std::size_t i = work.at; i < work.items.size(); ++i)
    if (!work.is_lost_to(id_, i)) return false;
  return true;
}

void GraphNode::cut_off(Work* work) try {
  for (std::size_t i = work->at; i < work->items.size(); ++i)
    cancel(*work->items[i].origins, id_, i == work->at ? work->given : 0);
  const Clock::time_point now = Clock::now();
  if (is_source())
    for (std::size_t i = 0; i < down_.size(); ++i) free_place(now, i);
  places_.forget(now);
  const std::vector<Turn> turns = std::move(work->turns);
  delete work;
  leave(turns);
  if (is_source()) end_input();
  try_end();
} catch (...) {
  graph_.abort(std::current_exception());
}

}  // namespace melflow
