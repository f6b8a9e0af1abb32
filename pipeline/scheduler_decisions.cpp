// What starts next: a slot for a source item, for an item that waits, for a further block, for a
// batch that has to go; and who gets whose place and memory. Everything here runs with the
// scheduler's mutex held.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/scheduler_parts.h"

namespace melflow {

void Scheduler::wake(Node& n) {
  if (!std::exchange(n.woken, true)) woken_.push_back(&n);
}

void Scheduler::wake_all() {
  for (auto& n : nodes_) wake(*n);
}

// From the sinks upwards, so that places are free before somebody asks for them.
void Scheduler::start_woken() {
  while (!woken_.empty()) {
    Node& n = *woken_.back();
    woken_.pop_back();
    n.woken = false;
    bool took = false;
    while (try_start(n)) took = true;
    if (took && n.up != nullptr) wake(*n.up);
    if (try_end(n))
      for (Node* d : n.down) wake(*d);
  }
}

bool Scheduler::try_start(Node& n) {
  if (n.ended) return false;
  if (n.traits.kind == StageKind::source) return try_source(n);
  return try_resume(n) || try_item(n) || try_flush(n);
}

bool Scheduler::try_source(Node& n) {
  Slot* slot = nullptr;
  if (!n.slots.empty()) {
    if (n.parked.empty() || !n.has_place_behind()) return false;
    slot = n.parked.front();
    auto ticket = ticket_for(slot->cost, slot->index);
    if (!ticket) return false;
    touch(n);
    n.parked.clear();
    admitted_ = slot->index + 1;
    auto stream =
        std::make_shared<Stream>(run_.ledger, slot->index, slot->cost, sinks_, nodes_.size());
    reserve_places(n);
    deliver(n, slot->pending, one_origin({std::move(ticket), std::move(stream)}));
    if (next_ >= total_ || stopping_) {
      free_slot(n, slot);
      return true;
    }
  } else {
    if (next_ >= total_ || stopping_) return false;
    slot = new_slot(n);
  }
  slot->task = Slot::Task::source;
  slot->index = next_++;
  skip_done();
  make_ready(n, slot);
  return true;
}

// Passes over source items that are done already.
void Scheduler::skip_done() {
  while (some_are_done_ && next_ < total_ && run_.ledger.outcome(next_) != Outcome::open) ++next_;
}

bool Scheduler::try_resume(Node& n) {
  for (std::size_t i = 0; i < n.parked.size(); ++i) {
    Slot* slot = n.parked[i];
    Stream& stream = *slot->input.origins->front().stream;
    const bool dead = stream.failed();
    if (!dead) {
      if (n.busy() >= n.concurrency || !n.has_place_behind()) continue;
      slot->ticket = ticket_for(stream.block_cost(), stream.index());
      if (!slot->ticket) continue;
    }
    touch(n);
    n.parked.erase(n.parked.begin() + static_cast<std::ptrdiff_t>(i));
    if (dead) {
      free_slot(n, slot);
    } else {
      reserve_places(n);
      make_ready(n, slot);
    }
    return true;
  }
  return false;
}

bool Scheduler::try_item(Node& n) {
  if ((n.busy() >= n.concurrency || !n.has_place_behind()) && !aborting_) return false;
  if (n.start_level > 0 && !may_begin(n)) [[unlikely]]
    return false;
  for (std::size_t i = 0; i < n.queue.size(); ++i) {
    Item& item = n.queue[i];
    const Origins& origins = *item.origins;
    const bool dead = aborting_ || std::all_of(origins.begin(), origins.end(),
                                               [](const Origin& o) { return o.stream->failed(); });
    if (!dead && conflicts(n, item)) continue;
    touch(n);
    if (aborting_) cancel(origins);
    Item taken = std::move(item);
    n.queue.erase(n.queue.begin() + static_cast<std::ptrdiff_t>(i));
    if (dead) {
      discard_.items.push_back(std::move(taken));
      return true;
    }
    n.report.items_in += 1;
    n.report.bytes_in += taken.bytes;
    n.report.rows_in += taken.rows;
    Slot* slot = new_slot(n);
    slot->task = Slot::Task::item;
    slot->input = std::move(taken);
    if (n.traits.in_order)
      for (const Origin& o : *slot->input.origins)
        if (!o.whole()) slot->in_order.push_back(o.stream.get());
    reserve_places(n);
    make_ready(n, slot);
    return true;
  }
  return false;
}

bool Scheduler::try_flush(Node& n) {
  if (n.traits.kind != StageKind::combine || !n.slots.empty() || n.held.empty()) return false;
  const bool last = n.up->ended && n.queue.empty() && n.promised == 0;
  if (!(last || n.flush) || !n.has_place_behind()) return false;
  touch(n);
  Slot* slot = new_slot(n);
  slot->task = Slot::Task::flush;
  reserve_places(n);
  make_ready(n, slot);
  return true;
}

// Moves the payload on: once it is in a queue, its ticket is no longer this slot's to keep.
void Scheduler::deliver(Node& n, Emission& out, std::shared_ptr<const Origins> origins) {
  n.report.items_out += 1;
  n.report.bytes_out += out.bytes;
  n.report.rows_out += out.rows;
  for (Node* d : n.down) {
    touch(*d);
    --d->promised;
    d->queue.push_back({origins, out.payload, out.bytes, out.rows});
    const std::size_t depth = d->queue.size();
    d->max_depth = std::max(d->max_depth, depth);
    d->filled += depth + d->promised >= d->capacity ? 1 : 0;
    if (--d->until_review == 0) [[unlikely]]
      review_queue(*d);
    wake(*d);
  }
  out.payload.reset();
}

bool Scheduler::try_end(Node& n) {
  if (n.ended || !no_more_input(n) || !n.queue.empty() || n.promised > 0 || !n.slots.empty() ||
      !n.held.empty())
    return false;
  touch(n);
  n.ended = true;
  return true;
}

// No slot is active and the run is not over: everybody waits. Nodes that wait for their queue to
// fill begin with what they have, and batches that wait for more are sent as they are; what these
// hold is the only thing that can be missing.
void Scheduler::unstall() {
  const auto moves = [this] { return active_ > 0 || !discard_.empty() || all_ended(); };
  wake_all();
  start_woken();
  if (moves()) return;
  if (begin_waiting()) {
    start_woken();
    if (moves()) return;
  }
  for (auto& n : nodes_) n->flush = !n->held.empty();
  wake_all();
  start_woken();
  if (moves()) return;
  std::string state;
  for (auto& n : nodes_)
    state += fmt::format(" {}: {} queued, {} slots, {} of them parked;", n->report.name,
                         n->queue.size(), n->slots.size(), n->parked.size());
  fail_run(std::make_exception_ptr(RunError("no stage can go on (a defect of melflow):" + state)));
  start_woken();
}

void Scheduler::fail_run(std::exception_ptr error) {
  if (!error_) error_ = std::move(error);
  aborting_ = stopping_ = true;
  drop_parked();
  for (auto& n : nodes_)
    if (n->slots.empty()) drop_held(*n);
  wake_all();
}

// The stage itself is not asked for its half-made batch: it may be what failed.
void Scheduler::drop_held(Node& n) {
  if (n.held.empty()) return;
  cancel(n.held);
  discard_.items.push_back({std::make_shared<const Origins>(std::exchange(n.held, {})), nullptr});
}

void Scheduler::park(Node& n, Slot& slot) {
  const auto later = [](const Slot* a, const Slot* b) {
    return a->source_index() < b->source_index();
  };
  n.parked.insert(std::upper_bound(n.parked.begin(), n.parked.end(), &slot, later), &slot);
}

// A stop cuts long files off and takes back the source item that was not admitted yet.
void Scheduler::drop_parked() {
  note_memory_wait(false);
  for (auto& n : nodes_) {
    touch(*n);
    for (Slot* slot : n->parked) {
      if (slot->input.origins) cancel(*slot->input.origins);
      free_slot(*n, slot);
    }
    n->parked.clear();
  }
}

void Scheduler::reserve_places(Node& n) {
  for (Node* d : n.down) ++d->promised;
}

void Scheduler::release_places(Node& n) {
  for (Node* d : n.down) --d->promised;
}

// Blocks of one stream pass a stage in order and one at a time, unless the stage says it needs
// neither.
bool Scheduler::conflicts(const Node& n, const Item& item) const {
  if (!n.traits.in_order || n.slots.empty()) return false;
  for (const Origin& mine : *item.origins) {
    if (mine.whole()) continue;
    for (const Slot* s : n.slots)
      if (std::find(s->in_order.begin(), s->in_order.end(), mine.stream.get()) != s->in_order.end())
        return true;
  }
  return false;
}

Scheduler::Slot* Scheduler::new_slot(Node& n) {
  if (n.idle_slots.empty()) {
    n.idle_slots.push_back(std::make_unique<Slot>());
    n.idle_slots.back()->node = &n;
  }
  Slot* slot = n.idle_slots.back().release();
  n.idle_slots.pop_back();
  n.slots.push_back(slot);
  return slot;
}

void Scheduler::free_slot(Node& n, Slot* slot) {
  n.slots.erase(std::find(n.slots.begin(), n.slots.end(), slot));
  if (slot->input.origins) discard_.items.push_back(std::move(slot->input));
  if (slot->pending.payload) discard_.items.push_back({nullptr, std::move(slot->pending.payload)});
  if (slot->cursor) discard_.cursors.push_back(std::move(slot->cursor));
  slot->first_block = true;
  slot->in_order.clear();
  slot->cost = 0;
  slot->pending = {};
  n.idle_slots.emplace_back(slot);
}

void Scheduler::make_ready(Node& n, Slot* slot) {
  ++active_;
  n.ready.push_back(slot);
  n.report.peak_concurrency = std::max(n.report.peak_concurrency, n.busy());
  tokens_.push_back(&n);
}

// Of the nodes that were sent a token, the one furthest down; its newest slot, whose input may
// still be in this core's cache. (Older ones are for the tokens that are already on their way.)
Scheduler::Slot* Scheduler::keep_deepest() {
  auto deepest = tokens_.end();
  for (auto it = tokens_.begin(); it != tokens_.end(); ++it)
    if ((*it)->has_workers() && (deepest == tokens_.end() || (*it)->id > (*deepest)->id))
      deepest = it;
  if (deepest == tokens_.end()) return nullptr;
  Node& n = **deepest;
  tokens_.erase(deepest);
  Slot* slot = n.ready.back();
  n.ready.pop_back();
  ++n.running;
  return slot;
}

std::shared_ptr<const Ticket> Scheduler::ticket_for(std::size_t bytes, std::size_t index) {
  // Announced before trying, so that a release in between is not missed.
  const bool others_wait = memory_waiting_.load();
  note_memory_wait(true);
  auto ticket = Ticket::try_make(*run_.budget, bytes, run_.ledger.oldest_open() == index);
  if (ticket && !others_wait) note_memory_wait(false);
  return ticket;
}

bool Scheduler::no_more_input(const Node& n) const {
  return n.up != nullptr ? n.up->ended : (next_ >= total_ || stopping_);
}

bool Scheduler::all_ended() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& n) { return n->ended; });
}

}  // namespace melflow
