#include "pipeline/run/graph_node.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "pipeline/base/threads.h"
#include "pipeline/base/tsan.h"
#include "pipeline/run/own_threads.h"
#include "pipeline/run/task_graph.h"

namespace melflow {
namespace {

// Upper bound of queued messages.
constexpr int kNobody = 1 << 30;

// The number of waiting items with which a node begins.
std::size_t start_level(const PlanNode& plan) {
  return static_cast<std::size_t>(std::ceil(plan.start_at * plan.queue));
}

}  // namespace

// Types with names, for the stack of a worker and for tests/support/tsan.supp.
struct GraphNode::Body {
  GraphNode* node;
  void operator()(const Message& sent, Run::output_ports_type&) const { node->run(sent.work); }
};
struct GraphNode::AsyncBody {
  GraphNode* node;
  // noexcept: then oneTBB calls it at once, which keeps the items' order and needs no worker.
  void operator()(const Message& sent, Async::gateway_type&) const noexcept {
    try {
      node->threads_->put(node->own(sent.work));
      node->offer(Clock::now(), Came::by_queue);
    } catch (...) {
      node->graph_.abort(std::current_exception());
    }
  }
};

GraphNode::GraphNode(TaskGraph& graph, int id, PlanNode& plan)
    : graph_(graph),
      id_(id),
      plan_(plan),
      in_order_(plan.stage->traits().order != BlockOrder::any),
      waits_for_memory_(plan.stage->traits().cuts ||
                        (plan.stage->traits().expands && plan.is_behind_expanding)),
      is_unbound_(plan.stage->traits().pairs || plan.stage->traits().lends),
      threads_(OwnThreads::make(*this)),
      places_(plan.concurrency, start_level(plan), graph.began()),
      calls_(graph, id, plan) {
  tbb::flow::graph& flow = graph.flow();
  if (threads_) {
    async_ = std::make_unique<Async>(flow, tbb::flow::unlimited, AsyncBody{this});
    return;
  }
  run_ = std::make_unique<Run>(flow, tbb::flow::unlimited, Body{this});
  waiting_ = std::make_unique<Waiting>(flow);
  limiter_ = std::make_unique<Limiter>(flow, static_cast<std::size_t>(kNobody));
  limiter_->decrementer().try_put(-kNobody);
}

// Work that is left when a run ended out of memory.
GraphNode::~GraphNode() {
  calls_.cancel_held();
  turns_.for_each_waiting([](Work& work) { drop(&work); });
  for (Message left; waiting_ && waiting_->try_get(left);)
    if (left.work != cursor_.get()) drop(left.work);
}

void GraphNode::join(const std::vector<GraphNode*>& down) {
  down_ = down;
  if (run_) {
    graph_.join(*waiting_, *limiter_, name() + ".waiting", name() + ".places");
    graph_.join(*limiter_, *run_, name() + ".places", name());
  }
  for (std::size_t i = 0; i < down_.size(); ++i) {
    GraphNode& d = *down_[i];
    d.ups_.push_back({this, i});
    ++d.ups_going_;
    places_.add_branch(static_cast<std::size_t>(d.plan_.queue));
    const auto join_queue = [&](auto& from) {
      if (d.async_)
        graph_.join(from, *d.async_, name(), d.name());
      else
        graph_.join(from, *d.waiting_, name(), d.name() + ".waiting");
    };
    if (async_)
      join_queue(tbb::flow::output_port<0>(*async_));
    else
      join_queue(tbb::flow::output_port<1>(*run_));
    if (run_ && d.run_ && down_.size() == 1)
      graph_.join(tbb::flow::output_port<0>(*run_), *d.run_, name(), d.name());
  }
  if (down_.empty()) calls_.be_last();
  if (plan_.outputs.empty() || down_.size() < 2) return;
  outputs_.resize(down_.size());
  for (std::size_t i = 0; i < down_.size(); ++i)
    for (const PlanInput& in : down_[i]->plan_.inputs)
      if (in.node == id_) outputs_[i].push_back(output_number(in.node, in.output));
}

bool GraphNode::takes(std::size_t branch, const Item& item) const {
  const std::vector<int>& outputs = outputs_[branch];
  return item.output < 0 || std::find(outputs.begin(), outputs.end(), item.output) != outputs.end();
}

void GraphNode::start_threads() {
  if (threads_) threads_->start_threads();
}

void GraphNode::join_threads() {
  if (threads_) threads_->join();
}

// ---- coming and going ---------------------------------------------------------------------------

// Nearly always there is one.
std::size_t GraphNode::branch_of(const GraphNode& up) const {
  std::size_t i = 0;
  while (ups_[i].node != &up) ++i;
  return ups_[i].branch;
}

// Of what was sent to several branches, or of a message's only one.
void GraphNode::let_go_of_share(Work* message) {
  tsan::release(message);
  if (message->copies.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  tsan::acquire(message);
  delete message;
}

void GraphNode::drop(Work* message) {
  for (const Item& i : message->items) {
    if (!i.origins) continue;
    for (const Origin& o : *i.origins) o.stream->cancel();
  }
  let_go_of_share(message);
}

// What was sent to several branches is copied.
Work* GraphNode::own(Work* message) const {
  tsan::acquire(message);
  if (message->copies.load(std::memory_order_relaxed) == 0) return message;
  const std::size_t branch = branch_of(*message->maker);
  try {
    auto mine = std::make_unique<Work>();
    mine->items = message->items;
    mine->index = message->index;
    mine->count = message->count;
    mine->from = message->from;
    mine->maker = message->maker;
    for (const Turn& t : message->turns)
      if (t.branch == branch) mine->turns.push_back(t);
    let_go_of_share(message);
    return mine.release();
  } catch (...) {
    drop(message);
    throw;
  }
}

void GraphNode::issue_turns(Work& work, std::size_t branch) {
  if (GraphNode& d = *down_[branch]; d.in_order_)
    for (const Item& i : work.items)
      d.turns_.issue(*i.origins, static_cast<std::uint32_t>(branch), work.turns);
}

// Reserves its place downstream, in sequence order. Returns whether it begins there at once, which
// is possible only with a single successor and for work without a turn.
bool GraphNode::address(Work& work, Clock::time_point now) {
  work.came = Came::by_queue;
  work.from = id_;
  if (down_.size() == 1) {
    GraphNode& d = *down_.front();
    if (d.places_.arrive(now, run_ && d.run_ && work.turns.empty())) {
      work.came = Came::past_queue;
      work.maker = nullptr;
      return true;
    }
  } else {
    work.copies.store(static_cast<int>(down_.size()), std::memory_order_relaxed);
    for (GraphNode* d : down_) d->places_.arrive(now, false);
  }
  work.maker = this;
  return false;
}

void GraphNode::send(Work* work, Clock::time_point now) {
  const bool past_queue = work->came == Came::past_queue;
  const Message message(work);
  tsan::release(work);
  if (async_)
    async_->gateway().try_put(message);
  else if (past_queue)
    tbb::flow::output_port<0>(*run_).try_put(message);
  else
    tbb::flow::output_port<1>(*run_).try_put(message);
  if (past_queue) return;
  for (GraphNode* d : down_)
    if (d->run_) d->offer(now, Came::by_queue);
}

// ---- by output ----------------------------------------------------------------------------------
// A node is sent what is for it alone, as work of its own: else each would have a place taken by
// what goes to the others, and drop it when its turn comes.

// Which nodes get something of these; mostly it is one.
std::vector<std::size_t> GraphNode::branches_of(const std::vector<Item>& items) const {
  std::vector<std::size_t> out;
  for (const Item& item : items)
    for (std::size_t branch = 0; branch < down_.size(); ++branch)
      if (takes(branch, item) && std::find(out.begin(), out.end(), branch) == out.end())
        out.push_back(branch);
  return out;
}

// Announces what goes to these nodes, as address() does; returns whether it begins there at once.
bool GraphNode::address_to(const std::vector<std::size_t>& branches, bool has_turns,
                           Clock::time_point now) {
  if (branches.size() == 1) {
    GraphNode& d = *down_[branches.front()];
    return d.places_.arrive(now, run_ && d.run_ && !has_turns);
  }
  for (const std::size_t branch : branches) down_[branch]->places_.arrive(now, false);
  return false;
}

// What each of `branches` gets of `work`, in their order; turns are issued, in the order of the
// work.
std::vector<std::unique_ptr<Work>> GraphNode::by_output(std::unique_ptr<Work> work,
                                                        const std::vector<std::size_t>& branches) {
  std::vector<std::unique_ptr<Work>> out;
  for (std::size_t k = 0; k + 1 < branches.size(); ++k) {
    Work& part = *out.emplace_back(std::make_unique<Work>());
    part.count = work->count;
    for (const Item& item : work->items)
      if (takes(branches[k], item)) part.items.push_back(item);
  }
  if (branches.size() > 1)
    std::erase_if(work->items, [&](const Item& item) { return !takes(branches.back(), item); });
  if (!branches.empty()) out.push_back(std::move(work));
  for (std::size_t k = 0; k < branches.size(); ++k) {
    out[k]->index = out[k]->items.front().origins->front().stream->index();
    out[k]->from = id_;
    issue_turns(*out[k], branches[k]);
  }
  return out;
}

// Without an edge of oneTBB's: what is put to a port goes to all that it leads to. `begins`: as
// address_to() has it.
void GraphNode::send_to(const std::vector<std::size_t>& branches,
                        std::vector<std::unique_ptr<Work>> parts, bool begins,
                        Clock::time_point now) {
  for (std::size_t k = 0; k < branches.size(); ++k) {
    GraphNode& d = *down_[branches[k]];
    Work* work = parts[k].release();
    work->came = begins ? Came::past_queue : Came::by_queue;
    work->maker = begins ? nullptr : this;
    if (begins) {
      const Message message(work);
      tsan::release(work);
      d.run_->try_put(message);
    } else {
      d.put_in_queue(work);
      d.offer(now, Came::by_queue);
    }
  }
}

// -------------------------------------------------------------------------------------------------

void GraphNode::put_in_queue(Work* work) {
  if (threads_) {
    threads_->put(work);
  } else {
    const Message message(work);
    tsan::release(work);
    waiting_->try_put(message);
  }
}

void GraphNode::wait_again(Work* work) {
  const Came came = work->came;
  put_in_queue(work);
  offer(Clock::now(), came);
}

void GraphNode::go_on(Work* work) {
  put_in_queue(work);
  graph_.resume(*this, nullptr);
}

void GraphNode::let_in(int more) {
  if (more <= 0) return;
  if (threads_) {
    for (int i = 0; i < more; ++i) async_->gateway().reserve_wait();
    threads_->let_in(more);
  } else {
    limiter_->decrementer().try_put(more);
  }
}

void GraphNode::let_go() { async_->gateway().release_wait(); }

void GraphNode::leave(const std::vector<Turn>& turns) {
  if (turns.empty()) return;
  std::vector<Work*> others;
  turns_.done(turns, others);
  for (Work* w : others) wait_again(w);
}

// ---- in the stage -------------------------------------------------------------------------------

// An exception here is not the stage's: the graph itself is out of memory.
void GraphNode::run(Work* work) try {
  work = own(work);
  if (!begin(work)) return;
  if (is_source()) return make();
  const bool measures_cpu = !threads_ && meter_.wants_cpu();
  const std::int64_t cpu = measures_cpu ? StageMeter::thread_cpu() : 0;
  const StageCalls::Outcome outcome = calls_.run(*work);
  work->cpu = measures_cpu ? StageMeter::thread_cpu() - cpu : -1;
  finish(work, outcome);
} catch (...) {
  graph_.abort(std::current_exception());
}

bool GraphNode::begin(Work* work) try {
  const Clock::time_point now = Clock::now();
  if (waits_for_memory_ && work->came == Came::again && !has_turn_again(work, now)) return false;
  if (work->came == Came::by_queue && !turns_.may_begin(*work)) {
    let_in(places_.put_off(now));
    try_end();  // its turn may have come, and another thread may have finished it
    return false;
  }
  begin_visit(*work, places_.begin(now, work->came));
  if (GraphNode* maker = std::exchange(work->maker, nullptr))
    maker->free_place(now, branch_of(*maker));
  if (graph_.is_aborting()) [[unlikely]]
    for (const Item& i : work->items)
      if (i.origins) cancel(*i.origins, id_);
  return true;
} catch (...) {
  graph_.abort(std::current_exception());
  return false;
}

// Of what has left its place in the queue.
bool GraphNode::has_turn_again(Work* work, Clock::time_point now) {
  places_.expect(now);
  if (turns_.may_begin(*work)) {
    places_.forget(now);
    return true;
  }
  let_in(places_.put_off(now));
  try_end();
  return false;
}

// What waits for its turn behind a block that waits for memory leaves its place in the queue to
// others: the oldest may be among them, which gets memory first.
bool GraphNode::clear_queue() {
  if (!waits_for_memory_) return false;
  const Clock::time_point now = Clock::now();
  std::vector<GraphNode*> makers;
  turns_.for_each_waiting([&](Work& work) {
    if (work.came != Came::by_queue) return;
    work.came = Came::again;
    makers.push_back(std::exchange(work.maker, nullptr));
    places_.leave_queue(now);
  });
  for (GraphNode* maker : makers) maker->free_place(now, branch_of(*maker));
  return !makers.empty();
}

void GraphNode::finish(Work* work, const StageCalls::Outcome& outcome) try {
  const bool goes_on = outcome.rest != StageCalls::Rest::none;
  std::unique_ptr<Work> message;
  if (goes_on && !work->out.empty()) message = new_work();
  if (graph_.is_aborting()) [[unlikely]] {
    for (const Item& i : work->out) cancel(*i.origins, id_);
    work->out.clear();
  }
  NodePlaces::Finish f;
  f.goes_on = goes_on;
  f.in = outcome.in;
  for (const Item& i : work->out) {
    f.out.add(i);
    check_bound(i);
  }
  std::vector<Turn> turns;
  if (!goes_on) turns.swap(work->turns);
  const Clock::time_point now = Clock::now();
  note_visit(*work, now,
             work->at - work->began_at + (outcome.rest == StageCalls::Rest::block ? 1 : 0));
  Visit visit = visit_of(*work, f);
  Work* sent = nullptr;
  std::vector<std::unique_ptr<Work>> parts;
  std::vector<std::size_t> branches;
  bool begins = false;
  if (!work->out.empty()) {
    sent = goes_on ? message.release() : work;
    sent->items.clear();
    sent->items.swap(work->out);
    sent->count = goes_on ? work->count++ : work->count;
    if (!goes_on) work->renew();
    sent->index = sent->items.front().origins->front().stream->index();
    // It is counted by the next node before this one lets it go, so that it is never in neither and
    // the next node does not take its input for over.
    if (outputs_.empty()) {
      for (std::size_t branch = 0; branch < down_.size(); ++branch) issue_turns(*sent, branch);
      f.gave = !address(*sent, now);
    } else {
      branches = branches_of(sent->items);
      parts = by_output(std::unique_ptr<Work>(std::exchange(sent, nullptr)), branches);
      begins = address_to(branches, !parts.empty() && !parts.front()->turns.empty(), now);
      f.gave = !begins;
      f.branches = &branches;
    }
  }
  let_in(places_.finish(now, f, &visit.ended));
  if (VisitLog* log = graph_.visits()) log->add(visit);
  // A worker runs the task that was spawned last first, so what was made goes on before more is
  // made.
  if (goes_on) {
    const Stream& next = *work->items[work->at].origins->front().stream;
    work->came = Came::again;
    work->index = next.index();  // or the oldest file would not be known for what it is
    if (!work->is_part) {
      work->record = next.records().first;
      work->records = next.records().count;
    }
    if (outcome.rest != StageCalls::Rest::block)
      wait_again(work);
    else if (graph_.gate().ask(work, *this, work->is_part ? work->part_cost : next.block_cost()))
      go_on(work);
  }
  if (f.branches != nullptr) {
    send_to(branches, std::move(parts), begins, now);
  } else if (sent != nullptr) {
    send(sent, now);
  } else if (!goes_on) {
    delete work;
  }
  leave(turns);
  try_end();
  tsan::release(this);
} catch (...) {
  graph_.abort(std::current_exception());
}

// ---- the end ------------------------------------------------------------------------------------

void GraphNode::input_ended() {
  if (--ups_going_ == 0) end_input();
}

bool GraphNode::end_input() {
  if (!places_.end_input(Clock::now())) return false;
  if (is_source()) graph_.context().ledger.note_closings();
  open();
  try_end();
  return true;
}

// An incomplete batch to be sent.
bool GraphNode::holds() const { return calls_.holds() && !graph_.is_aborting(); }

void GraphNode::try_end() {
  if (!places_.may_end()) return;
  switch (places_.try_end(Clock::now(), [this] { return holds(); })) {
    case NodePlaces::End::not_yet:
      return;
    case NodePlaces::End::flush:
      send_flush();
      return;
    case NodePlaces::End::now:
      break;
  }
  // The stage is not asked for its incomplete batch: that may be what failed.
  calls_.cancel_held();
  for (GraphNode* d : down_) d->input_ended();
}

bool GraphNode::open() {
  const std::optional<int> more = places_.open(Clock::now());
  if (more) let_in(*more);
  return more.has_value();
}

bool GraphNode::flush() {
  if (!places_.try_flush(Clock::now(), [this] { return holds(); })) return false;
  send_flush();
  return true;
}

void GraphNode::send_flush() {
  auto work = new_work();
  if (work == nullptr) {
    places_.forget(Clock::now());
    return try_end();
  }
  work->is_flush = true;
  work->came = Came::again;
  wait_again(work.release());
}

// Null where there is no memory, which ends the run.
std::unique_ptr<Work> GraphNode::new_work() {
  std::unique_ptr<Work> work(new (std::nothrow) Work);
  if (work == nullptr) graph_.abort(std::make_exception_ptr(std::bad_alloc()));
  return work;
}

}  // namespace melflow
