#include "pipeline/run/stage_executor.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "pipeline/plan/plan_memory.h"
#include "pipeline/report/observer.h"
#include "pipeline/run/task_graph.h"

namespace melflow {
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

// Returns the error that ends the run, for the exception that is being handled; its text names the
// node.
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

// Calls call(); an exception that does not concern the whole run is returned as the item's error.
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

// Payload before reservation, see Item.
void let_go(Item& item) { const Item done = std::move(item); }

}  // namespace

StageExecutor::StageExecutor(TaskGraph& graph, int node, const PlanNode& plan)
    : graph_(graph),
      node_(node),
      name_(plan.name),
      written_(plan.written),
      stage_(*plan.stage),
      items_(plan.faces.items),
      combine_(plan.faces.combine),
      inputs_(plan.inputs),
      cuts_(plan.stage->traits().cuts),
      pairs_(plan.stage->traits().pairs),
      divides_(plan.stage->traits().divides),
      splits_(plan.stage->traits().splits),
      must_give_ends_(!pairs_ && plan.outputs.empty()),
      block_step_(plan.block_step) {}

// Whether item `i` need not be processed: nothing downstream wants its result, or it left its stage
// by an output that this node does not take.
bool StageExecutor::is_lost(const Work& work, std::size_t i) const {
  const Item& item = work.items[i];
  if (item.output >= 0 && std::none_of(inputs_.begin(), inputs_.end(), [&](const PlanInput& in) {
        return item.output == output_number(in.node, in.output);
      }))
    return true;
  return work.is_lost_to(node_, i);
}

// The number of the input by which the present item came, for a stage that pairs.
std::size_t StageExecutor::input_of(const Work& work) const {
  const int output = work.items[work.progress.at].output;
  const auto is_it = [&](const PlanInput& in) {
    return in.node == work.sent.node &&
           (in.output < 0 || output == output_number(in.node, in.output));
  };
  return static_cast<std::size_t>(std::find_if(inputs_.begin(), inputs_.end(), is_it) -
                                  inputs_.begin());
}

StageExecutor::Outcome StageExecutor::run(Work& work) {
  Outcome o;
  try {
    if (makes()) {
      const Entered entered(graph_.observer(), node_);
      graph_.feed().make(work);
      return o;
    }
    if (work.progress.is_flush) {
      const Entered entered(graph_.observer(), node_);
      give_batch(work);
      return o;
    }
    std::vector<Leaving> outputs;  // of the present item, for a stage that splits
    const bool splits = splits_, pairs = pairs_;
    for (; work.progress.at < work.items.size(); ++work.progress.at) {
      Item& item = work.items[work.progress.at];
      if (is_lost(work, work.progress.at)) {
        work.progress.cursor.reset();
        work.progress.reservation.reset();
        work.progress.given = 0;
        let_go(item);
        continue;
      }
      const Entered entered(graph_.observer(), node_);
      if (!work.progress.cursor) o.in.add(item);
      if (combine_ != nullptr) {
        const bool is_complete = add(item);
        let_go(item);
        if (!is_complete) continue;
        give_batch(work);
        if (++work.progress.at < work.items.size()) o.rest = Rest::items;
        return o;
      }
      ItemContext context(graph_.context(), item, node_, pairs ? input_of(work) : 0,
                          work.progress.given);
      if (splits) context.set_outputs(outputs);
      Result<Emission> result = Emission{};
      if (auto error = caught([&] { result = items_->run(item, work.progress.cursor, context); }))
        result = std::move(*error);
      if (splits && result) {
        settle_outputs(work, item, outputs);
        outputs.clear();
        let_go(item);
        continue;
      }
      const bool has_more = settle(work, item, result, work.progress.out.emplace_back());
      work.progress.reservation.reset();
      if (!work.progress.out.back().payload) work.progress.out.pop_back();
      if (has_more) {
        o.rest = Rest::block;
        return o;
      }
      work.progress.cursor.reset();
      work.progress.given = 0;
      let_go(item);
    }
  } catch (...) {
    abort_run(work);
  }
  return o;
}

void StageExecutor::abort_run(Work& work) {
  graph_.abort(run_error(name_));
  if (makes()) work.progress.out.clear();
  for (Item& item : work.items)
    if (item.origins) cancel(*item.origins, node_);
  work.progress.at = work.items.size();
}

// Returns whether the combined item is full. An item that is refused is part of none.
bool StageExecutor::add(Item& item) {
  ItemContext context(graph_.context(), item, node_);
  Result<bool> is_complete = false;
  if (auto error = caught([&] { is_complete = combine_->add(item, context); }))
    is_complete = std::move(*error);
  if (is_complete)
    held_.insert(held_.end(), item.origins->begin(), item.origins->end());
  else
    fail(*item.origins, is_complete.error());
  return is_complete && *is_complete;
}

void StageExecutor::give_batch(Work& work) {
  if (held_.empty()) return;
  Item batch;
  batch.origins = std::make_shared<const Origins>(std::exchange(held_, {}));
  ItemContext context(graph_.context(), batch, node_);
  Result<Emission> out = Emission{};
  if (auto error = caught([&] { out = combine_->take(context); })) out = std::move(*error);
  if (!out) return fail(*batch.origins, out.error());
  if (!out->payload) return;
  batch.payload = std::move(out->payload);
  batch.bytes = out->bytes;
  batch.rows = out->rows;
  work.progress.out.push_back(std::move(batch));
}

void StageExecutor::fail(const Origins& origins, const ItemError& error,
                         std::uint64_t given) const {
  for (const Origin& o : origins) o.stream->fail(node_, error, o.block + given);
}

void StageExecutor::cancel_held() {
  cancel(held_, node_);
  held_.clear();
}

// Prepares the stage's result for the next nodes; an error fails the item's streams. Returns
// whether the stage has more for the item.
bool StageExecutor::settle(Work& work, Item& item, Result<Emission>& result, Item& out) const {
  if (!result) {
    fail(*item.origins, result.error(), work.progress.given);
    return false;
  }
  if (is_last_) {
    for (const Origin& o : *item.origins)
      if (o.last && !o.stream->is_lost_to(node_, o.block)) o.stream->sink_done(node_);
    return false;
  }
  Emission& given = *result;
  if (cuts_) note_next_part(work, given);
  if (!given.payload) {
    // Without its last block the sub-item would not end, and the next one would be taken for a part
    // of it. A route drops sub-items as a whole.
    if (const Origin& in = item.origins->front();
        !given.more && must_give_ends_ && in.sub_item && in.ends() && !in.last)
      fail(*item.origins,
           ItemError::failed("its last block of a result came to nothing (a bug in a stage)"),
           work.progress.given);
    return given.more;
  }
  out.payload = std::move(given.payload);
  out.bytes = given.bytes;
  out.rows = given.rows;
  if (given.output >= 0) out.output = output_number(node_, given.output);
  if (cuts_) {
    PartOf& part = given.part;
    if (part.stream == nullptr || work.progress.reservation == nullptr)
      throw std::logic_error("a stage that cuts gave what it had not announced");
    const std::uint64_t piece = part.stream->next_piece();
    part.stream->note_piece();
    out.origins = one_origin(
        {work.progress.reservation, std::move(part.stream), part.first, part.last, piece});
    return given.more;
  }
  if (given.origins) {
    out.origins = std::move(given.origins);
    return given.more;
  }
  // The output is one of several blocks. The first is covered by the reservation of the item it is
  // cut from; each later one has its own.
  if (given.more || work.progress.given > 0 || divides_) {
    const Origin& in = item.origins->front();
    const bool is_first = work.progress.given == 0;
    Origin origin{is_first ? in.reservation : work.progress.reservation,
                  in.stream,
                  in.first && is_first,
                  in.last && !given.more,
                  in.block + work.progress.given,
                  in.sub_item,
                  in.is_last_of_sub_item && !given.more};
    if (divides_) {
      if (in.ends() && !given.more && !given.ends)
        throw std::logic_error("a stage that divides gave a last piece that ends no sub-item");
      origin.is_last_of_sub_item = given.ends;
      origin.sub_item = in.stream->next_sub_item(
          node_, {in.sub_item, &stage_, written_, 0, 0, given.span}, given.ends);
    }
    out.origins = one_origin(std::move(origin));
    work.progress.given += block_step_;
  } else {
    out.origins = std::move(item.origins);
  }
  return given.more;
}

// Takes what leaves by each of the outputs of a stage that splits. Sinks that only the other
// outputs lead to do not get the item.
void StageExecutor::settle_outputs(Work& work, const Item& item,
                                   std::vector<Leaving>& outputs) const {
  std::vector<int> used;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Leaving& given = outputs[i];
    if (!given.payload) continue;
    used.push_back(static_cast<int>(i));
    work.progress.out.push_back({item.origins, std::move(given.payload), given.bytes, given.rows,
                                 output_number(node_, used.back())});
  }
  if (used.size() < outputs.size())
    for (const Origin& o : *item.origins)
      o.stream->route(node_, used, ItemError::skipped("leaves " + name_ + " by other outputs"),
                      o.block);
}

void StageExecutor::note_next_part(Work& work, const Emission& given) const {
  work.request.is_part = given.more;
  if (!given.more) return;
  work.request.record = given.part.next_record;
  work.request.records = 1;
  work.request.part_cost =
      part_cost(graph_.plan(), static_cast<std::size_t>(node_), given.part.next_bytes);
}

// ---- by an engine -------------------------------------------------------------------------------

bool StageExecutor::begin(Engine& engine, Work& work) {
  if (work.in_engine == nullptr) {
    work.in_engine = std::make_unique<Work::InEngine>();
    for (std::size_t i = 0; i < work.items.size(); ++i) work.in_engine->tags.push_back({&work, i});
    work.progress.out.resize(work.items.size());
  }
  Work::InEngine::Tag& tag = work.in_engine->tags[work.progress.at];
  Item& item = work.items[work.progress.at++];
  if (!item.origins || is_lost(work, work.progress.at - 1)) return false;
  work.in_engine->passed.add(item);
  if (RunObserver* observer = graph_.observer()) [[unlikely]]
    tag.observed = observer->begin(node_);
  try {
    auto error =
        caught([&] { engine.begin(&tag, item, ItemContext(graph_.context(), item, node_)); });
    if (!error) {
      ++work.in_engine->in_flight;
      return true;
    }
    Result<Emission> nothing = std::move(*error);
    settle(work, item, nothing, work.progress.out[tag.item]);
  } catch (...) {
    abort_run(work);
  }
  if (RunObserver* observer = graph_.observer()) [[unlikely]]
    observer->end(tag.observed);
  return false;
}

void StageExecutor::end(Work::InEngine::Tag& tag, Result<Emission> result) {
  if (RunObserver* observer = graph_.observer()) [[unlikely]]
    observer->end(tag.observed);
  Work& work = *tag.work;
  --work.in_engine->in_flight;
  Item& item = work.items[tag.item];
  settle(work, item, result, work.progress.out[tag.item]);
  let_go(item);
}

bool StageExecutor::is_done(Work& work) {
  if (work.in_engine->in_flight > 0 || work.progress.at < work.items.size()) return false;
  std::erase_if(work.progress.out, [](const Item& i) { return !i.payload; });
  return true;
}

}  // namespace melflow
