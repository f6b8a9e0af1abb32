#include "pipeline/scheduler.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pipeline/scheduler_parts.h"

namespace melflow {

Scheduler::Scheduler(Plan& plan, RunContext& run, std::size_t nodes, RunObserver* observer)
    : plan_(plan),
      run_(run),
      observer_(observer),
      total_(run.source.source_count()),
      began_(Clock::now()) {
  some_are_done_ = run.ledger.counts().closed() > 0;
  skip_done();
  for (std::size_t i = 0; i < nodes; ++i) {
    PlanNode& p = plan_.nodes[i];
    auto n = std::make_unique<Node>();
    n->id = static_cast<int>(nodes_.size());
    n->stage = p.stage.get();
    n->traits = p.stage->traits();
    n->concurrency = p.concurrency;
    open_queue(*n, p);
    n->since = began_;
    n->report.name = p.name;
    n->report.stage = p.info->name;
    n->report.concurrency = p.concurrency;
    if (p.from >= 0) {
      n->up = nodes_[static_cast<std::size_t>(p.from)].get();
      n->up->down.push_back(n.get());
    }
    if (auto engine = p.stage->engine(p.concurrency)) {
      n->driver = std::make_unique<Driver>(*this, *n, std::move(engine));
    } else if (p.stage->blocking()) {
      n->threads = std::make_unique<Threads>(*this, *n, p.concurrency);
    } else {
      n->flow = std::make_unique<tbb::flow::function_node<tbb::flow::continue_msg>>(
          graph_, tbb::flow::unlimited, Body{this, n.get()});
    }
    nodes_.push_back(std::move(n));
  }
  for (const auto& n : nodes_)
    if (n->down.empty()) ++sinks_;
  graph_.reserve_wait();  // until every stage has ended
}

Scheduler::~Scheduler() {
  // All of them before anything is destroyed: they send each other tokens.
  for (auto& n : nodes_) {
    if (n->threads) n->threads->join();
    if (n->driver) n->driver->join();
  }
}

// ---- entry points -----------------------------------------------------------------------------

template <class F>
Scheduler::Slot* Scheduler::locked(bool keep_one, F&& body) {
  Slot* kept = nullptr;
  bool ended = false;
  std::vector<Node*> tokens;
  Discard discard;
  const auto settle = [&] {
    start_woken();
    if (active_ == 0 && discard_.empty() && !all_ended()) unstall();
    // What it gives back may set others going, so the run is not over before that.
    if (!discard_.empty()) ++active_;
    if (active_ == 0 && !ended_ && all_ended()) ended = ended_ = true;
    if (keep_one && kept == nullptr) kept = keep_deepest();
    if (!tokens_.empty()) std::swap(tokens, tokens_);
    if (!discard_.empty()) std::swap(discard, discard_);
  };
  const auto send = [&tokens] {
    for (Node* n : tokens) {
      if (n->threads) {
        n->threads->put_token();
      } else if (n->driver) {
        n->driver->put_token();
      } else {
        tsan::release(n);
        n->flow->try_put({});
      }
    }
    tokens.clear();
  };
  {
    const std::lock_guard lock(mutex_);
    now_ = Clock::now();
    body();
    settle();
  }
  send();
  while (!discard.empty()) {
    discard.clear();
    {
      const std::lock_guard lock(mutex_);
      now_ = Clock::now();
      --active_;
      settle();
    }
    send();
  }
  if (ended) graph_.release_wait();
  return kept;
}

void Scheduler::start() {
  locked(false, [this] { wake(*nodes_.front()); });
}

void Scheduler::wait() {
  graph_.wait_for_all();
  for (auto& n : nodes_) tsan::acquire(n.get());
  // Whoever gave memory back last took the mutex after that: what follows comes behind it.
  const std::lock_guard lock(mutex_);
}

void Scheduler::stop() {
  locked(false, [this] {
    stopping_ = true;
    drop_parked();
    wake_all();
  });
}

void Scheduler::abort(std::exception_ptr error) {
  locked(false, [&] { fail_run(std::move(error)); });
}

void Scheduler::memory_freed() {
  if (!memory_waiting_.load()) return;
  locked(false, [this] {
    note_memory_wait(false);
    for (auto& n : nodes_)
      if (!n->parked.empty()) wake(*n);
  });
}

std::exception_ptr Scheduler::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

std::size_t Scheduler::admitted() const {
  const std::lock_guard lock(mutex_);
  return admitted_;
}

// ---- running one slot -------------------------------------------------------------------------

namespace {

class Entered {
 public:
  Entered(RunObserver* observer, int node) : observer_(observer) {
    if (observer_ != nullptr) [[unlikely]]
      observer_->enter(node);
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  ~Entered() {
    if (observer_ != nullptr) [[unlikely]]
      observer_->leave();
  }

 private:
  RunObserver* observer_;
};

// What breaks a run, told with the node that broke it. Call it where an exception is handled.
std::exception_ptr run_error(const std::string& node) {
  try {
    throw;
  } catch (const RunError&) {
    return std::current_exception();
  } catch (const std::bad_alloc&) {
    return std::make_exception_ptr(RunError(
        fmt::format("{}: out of memory; lower memory.host or the node's concurrency", node)));
  } catch (const std::exception& e) {
    return std::make_exception_ptr(
        RunError(fmt::format("{}: unexpected error: {}", node, e.what())));
  } catch (...) {
    return std::make_exception_ptr(RunError(node + ": unexpected error"));
  }
}

}  // namespace

void Scheduler::run_token(Node& n) {
  tsan::acquire(&n);
  // The slot that is returned runs next in the same task, without a trip through a deque.
  for (Slot* slot = take_ready(n); slot != nullptr;) slot = execute(slot);
  tsan::release(&n);
}

Scheduler::Slot* Scheduler::take_ready(Node& n) {
  const std::lock_guard lock(mutex_);
  now_ = Clock::now();
  touch(n);
  Slot* slot = n.ready.front();
  n.ready.pop_front();
  ++n.running;
  return slot;
}

Scheduler::Slot* Scheduler::execute(Slot* slot) {
  Emission out;
  try {
    const Entered entered(observer_, slot->node->id);
    out = process(*slot);
  } catch (...) {
    abort(run_error(slot->node->report.name));
    if (slot->input.origins) cancel(*slot->input.origins);
  }
  return finish(slot, std::move(out));
}

Scheduler::Slot* Scheduler::finish(Slot* slot, Emission out) {
  // What is not needed any more goes back now, while this slot still counts as active: it may be
  // what somebody else is waiting for. Payload before ticket, see Item.
  slot->ticket.reset();
  if (!out.payload) slot->out_origins.reset();
  if (!out.more && slot->task == Slot::Task::item) {
    slot->cursor.reset();
    const Item done = std::move(slot->input);
  }
  return locked(slot->node->has_workers(), [&] { complete(*slot, out); });
}

namespace {

// What call() gives; an exception that is none of the whole run's is the item's error.
template <class F>
std::optional<ItemError> caught(F&& call) {
  try {
    call();
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const RunError&) {
    throw;
  } catch (const std::exception& e) {
    return ItemError::failed(std::string("unexpected error: ") + e.what());
  } catch (...) {
    return ItemError::failed("unexpected error");
  }
}

}  // namespace

bool Scheduler::begin(Slot* slot, Engine& engine) {
  Node& n = *slot->node;
  slot->out_origins = slot->input.origins;
  if (observer_ != nullptr) [[unlikely]]
    slot->observed = observer_->begin(n.id);
  Emission nothing;
  try {
    auto error =
        caught([&] { engine.begin(slot, slot->input, ItemContext(run_, slot->input, n.id)); });
    if (!error) return true;
    nothing = settled(*slot, std::move(*error));
  } catch (...) {
    abort(run_error(n.report.name));
    cancel(*slot->input.origins);
  }
  end(slot, std::move(nothing));
  return false;
}

void Scheduler::end(Slot* slot, Emission out) {
  if (observer_ != nullptr) [[unlikely]]
    observer_->end(slot->observed);
  finish(slot, std::move(out));
}

Emission Scheduler::process(Slot& slot) {
  Node& n = *slot.node;
  if (slot.task == Slot::Task::source) {
    AnyStage::SourceItem made = n.stage->source_item(slot.index);
    slot.cost = admission_cost(plan_, made.info);
    slot.pending.payload = std::move(made.payload);
    slot.pending.bytes = made.info.bytes;
    return {};
  }
  if (slot.task == Slot::Task::flush) return n.stage->take();

  const Origins& origins = *slot.input.origins;
  slot.out_origins = slot.input.origins;
  if (n.traits.kind == StageKind::combine) {
    n.held.insert(n.held.end(), origins.begin(), origins.end());
    if (!n.stage->add(slot.input)) return {};
    slot.out_origins = std::make_shared<const Origins>(std::exchange(n.held, {}));
    return n.stage->take();
  }

  ItemContext context(run_, slot.input, n.id);
  Result<Emission> result = Emission{};
  if (auto error = caught([&] { result = n.stage->run(slot.input, slot.cursor, context); }))
    result = std::move(*error);
  return settled(slot, std::move(result));
}

Emission Scheduler::settled(Slot& slot, Result<Emission> result) {
  Node& n = *slot.node;
  const Origins& origins = *slot.input.origins;
  if (!result) {
    for (const Origin& o : origins) o.stream->fail(n.id, result.error());
    return {};
  }
  Emission out = std::move(*result);
  if (n.down.empty()) {
    for (const Origin& o : origins)
      if (o.last && !o.stream->failed()) o.stream->sink_done();
    return {};
  }
  // One of several blocks: the first one is covered by the ticket of what it is cut from, every
  // other one has its own.
  if (out.payload && (out.more || !slot.first_block)) {
    const Origin& in = origins.front();
    slot.out_origins = one_origin({slot.first_block ? in.ticket : std::move(slot.ticket), in.stream,
                                   in.first && slot.first_block, in.last && !out.more});
    slot.first_block = false;
  }
  return out;
}

void Scheduler::complete(Slot& slot, Emission& out) {
  Node& n = *slot.node;
  touch(n);
  --n.running;
  --active_;
  wake(n);
  if (slot.task == Slot::Task::source) {
    park(n, slot);
    if (stopping_) drop_parked();
    return;
  }
  if (slot.task == Slot::Task::flush) {
    n.flush = false;
    slot.out_origins = std::make_shared<const Origins>(std::exchange(n.held, {}));
  }
  if (aborting_) {
    drop_held(n);
    if (slot.out_origins) cancel(*slot.out_origins);
    discard_.items.push_back({std::move(slot.out_origins), std::move(out.payload)});
  }
  if (out.payload) {
    deliver(n, out, std::move(slot.out_origins));
  } else {
    release_places(n);
    if (slot.out_origins) discard_.items.push_back({std::move(slot.out_origins), nullptr});
  }
  if (out.more) {
    park(n, slot);
    if (stopping_) drop_parked();
  } else {
    free_slot(n, &slot);
  }
}

}  // namespace melflow
