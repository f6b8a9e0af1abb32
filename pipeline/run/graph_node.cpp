#include "pipeline/run/graph_node.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "pipeline/base/tsan.h"
#include "pipeline/run/async_driver.h"
#include "pipeline/run/task_graph.h"

namespace melflow {
namespace {

// The number of waiting items with which a node begins.
std::size_t start_level(const PlanNode& plan) {
  return static_cast<std::size_t>(std::ceil(plan.start_at * plan.queue));
}

NodeQueue::Order order(const StageTraits& traits) {
  if (traits.order == BlockOrder::any) return NodeQueue::Order::none;
  return traits.pairs ? NodeQueue::Order::all : NodeQueue::Order::blocks;
}

void put(Work* work, tbb::flow::receiver<Work*>& into) {
  tsan::release(work);
  into.try_put(work);
}

}  // namespace

// Types with names, for the stack of a worker and for tests/support/tsan.supp.
struct GraphNode::Body {
  GraphNode* node;
  void operator()(Work* work, Run::output_ports_type&) const { node->run(work); }
};
struct GraphNode::AsyncBody {
  GraphNode* node;
  // noexcept: then oneTBB calls it at once and needs no worker for it.
  void operator()(Work* work, Async::gateway_type& gateway) const noexcept {
    gateway.reserve_wait();
    try {
      tsan::acquire(work);
      node->driver_->put(work);
    } catch (...) {
      drop(work);
      node->graph_.abort(std::current_exception());
      gateway.release_wait();
    }
  }
};

GraphNode::GraphNode(TaskGraph& graph, int id, PlanNode& plan)
    : graph_(graph),
      id_(id),
      plan_(plan),
      waits_for_memory_(plan.stage->traits().cuts ||
                        (plan.stage->traits().expands && plan.is_behind_expanding)),
      is_unbound_(plan.stage->traits().pairs || plan.stage->traits().lends),
      driver_(AsyncDriver::make(*this)),
      queue_(plan.concurrency, start_level(plan), order(plan.stage->traits()), graph.began()),
      executor_(graph, id, plan) {
  if (driver_)
    async_ = std::make_unique<Async>(graph.flow(), tbb::flow::unlimited, AsyncBody{this});
  else
    run_ = std::make_unique<Run>(graph.flow(), tbb::flow::unlimited, Body{this});
}

GraphNode::~GraphNode() {
  executor_.cancel_held();
  for (Work* left : queue_.drain())
    if (left != cursor_.get()) drop(left);
}

void GraphNode::join(const std::vector<GraphNode*>& down) {
  down_ = down;
  for (std::size_t i = 0; i < down_.size(); ++i) {
    GraphNode& d = *down_[i];
    d.ups_.push_back(this);
    ++d.ups_going_;
    queue_.add_branch(static_cast<std::size_t>(d.plan_.queue));
    const auto join_to = [&](auto& to) {
      if (i > 0)
        graph_.join(
            *ports_.emplace_back(std::make_unique<tbb::flow::broadcast_node<Work*>>(graph_.flow())),
            to, name(), d.name());
      else if (async_)
        graph_.join(tbb::flow::output_port<0>(*async_), to, name(), d.name());
      else
        graph_.join(tbb::flow::output_port<0>(*run_), to, name(), d.name());
    };
    d.async_ ? join_to(*d.async_) : join_to(*d.run_);
  }
  if (down_.empty()) executor_.be_last();
  if (plan_.outputs.empty() || down_.size() < 2) return;
  outputs_.resize(down_.size());
  for (std::size_t i = 0; i < down_.size(); ++i)
    for (const PlanInput& in : down_[i]->plan_.inputs)
      if (in.node == id_) outputs_[i].push_back(output_number(in.node, in.output));
}

void GraphNode::start_threads() {
  if (driver_) driver_->start_threads();
}

void GraphNode::join_threads() {
  if (driver_) driver_->join();
}

// ---- to the nodes behind this one ---------------------------------------------------------------

bool GraphNode::takes(std::size_t branch, const Item& item) const {
  if (outputs_.empty() || item.output < 0) return true;
  const std::vector<int>& outputs = outputs_[branch];
  return std::find(outputs.begin(), outputs.end(), item.output) != outputs.end();
}

// Returns none if memory runs out, which ends the run.
GraphNode::Parcels GraphNode::make_parcels(std::unique_ptr<Work> work) {
  if (down_.size() < 2) return {{0, std::move(work)}, nullptr};
  try {
    std::vector<Parcel> parcels = copies(*work);
    if (parcels.empty()) return {};
    parcels.front().work = std::move(work);
    Parcel first = std::move(parcels.front());
    parcels.erase(parcels.begin());
    return {std::move(first), std::make_unique<std::vector<Parcel>>(std::move(parcels))};
  } catch (const std::bad_alloc&) {
    graph_.abort(std::current_exception());
    if (work) drop(work.release());
    return {};
  }
}

// A parcel for each node that gets something of `work`, which itself becomes the first one.
std::vector<GraphNode::Parcel> GraphNode::copies(Work& work) const {
  std::vector<Parcel> out;
  for (std::size_t branch = 0; branch < down_.size(); ++branch)
    if (std::any_of(work.items.begin(), work.items.end(),
                    [&](const Item& item) { return takes(branch, item); }))
      out.push_back({branch, {}});
  for (std::size_t i = 1; i < out.size(); ++i) {
    Work& copy = *(out[i].work = std::make_unique<Work>());
    copy.count = work.count;
    for (const Item& item : work.items)
      if (takes(out[i].branch, item)) copy.items.push_back(item);
    copy.index = copy.items.front().origins->front().stream->index();
  }
  if (!out.empty() && !outputs_.empty()) {
    std::erase_if(work.items, [&](const Item& item) { return !takes(out.front().branch, item); });
    work.index = work.items.front().origins->front().stream->index();
  }
  return out;
}

// Notes that the work's memory is held for that node from now on.
void GraphNode::note_holder(const Work& work, int node) {
  for (const Origin& o : *work.items.front().origins)  // several items have the same reservation
    if (o.reservation) o.reservation->set_node(node);
}

// Puts the parcels that have to wait into their queues; `waiting` gets their branches. The others
// stay here, for send().
void GraphNode::arrive_downstream(Parcels& parcels, std::vector<std::size_t>& waiting,
                                  Clock::time_point now) {
  parcels.each([&](Parcel& p) {
    GraphNode& d = *down_[p.branch];
    p.work->sent = {id_, this, p.branch};
    note_holder(*p.work, d.id_);
    StartList opened;
    Work* const work = p.work.release();
    if (d.queue_.arrive(now, *work, opened)) {
      work->sent.sender = nullptr;
      p.work.reset(work);
    } else {
      waiting.push_back(p.branch);
    }
    d.start(opened);
  });
}

void GraphNode::send(Parcels& parcels) {
  parcels.each([&](Parcel& p) {
    if (!p.work) return;
    Work* const work = p.work.release();
    tsan::release(work);
    if (p.branch > 0)
      ports_[p.branch - 1]->try_put(work);
    else if (async_)
      async_->gateway().try_put(work);
    else
      tbb::flow::output_port<0>(*run_).try_put(work);
  });
}

void GraphNode::start(StartList& list) {
  while (Work* work = list.take()) {
    if (run_)
      put(work, *run_);
    else
      put(work, *async_);
  }
}

void GraphNode::drop(Work* work) {
  for (const Item& i : work->items) {
    if (!i.origins) continue;
    for (const Origin& o : *i.origins) o.stream->cancel();
  }
  delete work;
}

void GraphNode::release_wait() { async_->gateway().release_wait(); }

void GraphNode::free_token(Clock::time_point now, const Work::Sent& sent) {
  if (sent.sender == nullptr) return;
  StartList list;
  sent.sender->queue_.free_token(now, sent.branch, list);
  sent.sender->start(list);
}

// ---- in the stage -------------------------------------------------------------------------------

// An exception here is not the stage's: the graph itself is out of memory.
void GraphNode::run(Work* work) try {
  tsan::acquire(work);
  begin(*work);
  if (is_source()) return make();
  const bool measures_cpu = !driver_ && queue_.wants_cpu();
  const std::int64_t cpu = measures_cpu ? StageMeter::thread_cpu() : 0;
  const StageExecutor::Outcome outcome = executor_.run(*work);
  work->timing.cpu = measures_cpu ? StageMeter::thread_cpu() - cpu : -1;
  finish(work, outcome);
} catch (...) {
  graph_.abort(std::current_exception());
}

void GraphNode::begin(Work& work) try {
  const Clock::time_point now = Clock::now();
  begin_visit(work, queue_.begin(now, work.queued.entry));
  free_token(now, std::exchange(work.sent, {.node = work.sent.node}));
  if (graph_.is_aborting()) [[unlikely]]
    for (const Item& i : work.items)
      if (i.origins) cancel(*i.origins, id_);
} catch (...) {
  graph_.abort(std::current_exception());
}

void GraphNode::finish(Work* work, const StageExecutor::Outcome& outcome) try {
  Work::Progress& progress = work->progress;
  const bool goes_on = outcome.rest != StageExecutor::Rest::none;
  std::unique_ptr<Work> output;
  if (goes_on && !progress.out.empty()) output = new_work();
  if (graph_.is_aborting()) [[unlikely]] {
    for (const Item& i : progress.out) cancel(*i.origins, id_);
    progress.out.clear();
  }
  NodeQueue::Finish f;
  f.goes_on = goes_on;
  f.in = outcome.in;
  for (const Item& i : progress.out) {
    f.out.add(i);
    check_bound(i);
  }
  const Clock::time_point now = Clock::now();
  f.visit = meter_visit(
      *work, now,
      progress.at - work->timing.began_at + (outcome.rest == StageExecutor::Rest::block ? 1 : 0));
  Visit visit = visit_of(*work, f);
  if (!goes_on) {
    f.streams.swap(work->queued.streams);
    output.reset(work);
  }
  Parcels parcels;
  std::vector<std::size_t> waiting;
  if (!progress.out.empty()) {
    output->items.clear();
    output->items.swap(progress.out);
    output->count = goes_on ? work->count++ : work->count;
    if (!goes_on) work->renew();
    output->index = output->items.front().origins->front().stream->index();
    parcels = make_parcels(std::move(output));
    arrive_downstream(parcels, waiting, now);
    f.gave = !waiting.empty();
    if (down_.size() > 1) f.branches = &waiting;
  }
  if (goes_on) {
    const Stream& next = *work->items[progress.at].origins->front().stream;
    work->index = next.index();  // of the file that comes next, which may be the oldest of all
    if (!work->request.is_part) {
      work->request.record = next.records().first;
      work->request.records = next.records().count;
    }
    if (outcome.rest == StageExecutor::Rest::items) f.resumed = work;
  }
  StartList list;
  visit.ended = queue_.finish(now, f, list);
  if (VisitLog* log = graph_.visits()) log->add(visit);
  output.reset();
  start(list);
  if (outcome.rest == StageExecutor::Rest::block) {
    const Work::Request& request = work->request;
    const std::size_t bytes = request.is_part
                                  ? request.part_cost
                                  : work->items[progress.at].origins->front().stream->block_cost();
    if (graph_.gate().ask(work, *this, bytes)) {
      // At once: workers with tasks of their own leave an enqueued task until the source ends, and
      // a file that is not complete holds up the rows of all behind it.
      queue_.put_back(Clock::now(), *work);
      resume_oldest();
    }
  }
  // Last: a worker runs the task that was spawned last first, so the output goes on before more is
  // made.
  send(parcels);
  try_end();
  tsan::release(this);
} catch (...) {
  graph_.abort(std::current_exception());
}

void GraphNode::resume(Work* work) {
  StartList list;
  queue_.resume(Clock::now(), *work, list);
  start(list);
}

void GraphNode::resume_oldest() {
  StartList list;
  queue_.resume_oldest(Clock::now(), list);
  start(list);
}

bool GraphNode::release_tokens() {
  if (!waits_for_memory_) return false;
  const Clock::time_point now = Clock::now();
  const std::vector<Work::Sent> senders = queue_.release_tokens(now);
  for (const Work::Sent& sent : senders) free_token(now, sent);
  return !senders.empty();
}

// ---- the end ------------------------------------------------------------------------------------

// A node before it has ended.
void GraphNode::input_ended() {
  if (--ups_going_ == 0) end_input();
}

bool GraphNode::end_input() {
  if (!queue_.end_input(Clock::now())) return false;
  if (is_source()) graph_.context().ledger.note_closings();
  open();
  try_end();
  return true;
}

// Whether there is an incomplete batch to send.
bool GraphNode::holds() const { return executor_.holds() && !graph_.is_aborting(); }

void GraphNode::try_end() {
  if (!queue_.may_end()) return;
  switch (queue_.try_end(Clock::now(), [this] { return holds(); })) {
    case NodeQueue::End::not_yet:
      return;
    case NodeQueue::End::flush:
      send_flush();
      return;
    case NodeQueue::End::now:
      break;
  }
  // The stage is not asked for its incomplete batch: that may be what failed.
  executor_.cancel_held();
  for (GraphNode* d : down_) d->input_ended();
}

bool GraphNode::open() {
  StartList list;
  const bool opened = queue_.open(Clock::now(), list);
  start(list);
  return opened;
}

bool GraphNode::flush() {
  if (!queue_.try_flush(Clock::now(), [this] { return holds(); })) return false;
  send_flush();
  return true;
}

void GraphNode::send_flush() {
  auto work = new_work();
  if (work == nullptr) {
    queue_.withdraw(Clock::now());
    return try_end();
  }
  work->progress.is_flush = true;
  resume(work.release());
}

// Null where there is no memory, which ends the run.
std::unique_ptr<Work> GraphNode::new_work() {
  std::unique_ptr<Work> work(new (std::nothrow) Work);
  if (work == nullptr) graph_.abort(std::make_exception_ptr(std::bad_alloc()));
  return work;
}

}  // namespace melflow
