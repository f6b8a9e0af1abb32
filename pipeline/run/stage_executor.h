// Calls a node's stage for the items that were sent to the node, one by one. An error of an item
// fails its files alone, and an item's memory is given back as soon as it is done.
#pragma once

#include <string>

#include "pipeline/plan/plan.h"
#include "pipeline/run/work.h"

namespace melflow {

class TaskGraph;

/// Threads: run(), begin(), end() and is_done() of different work from several threads at once, of
/// the same work from one at a time; of a combining stage one call at a time, whatever the work.
/// be_last() before the run.
/// Lifetime: as its GraphNode; `plan` outlives it.
/// Errors: of a stage's call, RunError and std::bad_alloc end the run by TaskGraph::abort(); any
/// other exception fails the item's stream.
class StageExecutor {
 public:
  StageExecutor(TaskGraph& graph, int node, const PlanNode& plan);

  /// Makes the stage the last one: no node takes what it gives, and an item is done after its call.
  void be_last() { is_last_ = true; }

  /// What remains of the items after a call of run().
  enum class Rest {
    none,
    block,  ///< a further block of the present item, which needs memory
    items   ///< further items
  };
  struct Outcome {
    Rest rest = Rest::none;
    Passed in;
  };
  /// Calls the stage and appends what it gives to `work.out`. Reports errors of the whole run to
  /// the graph.
  Outcome run(Work& work);
  /// Hands the next item to an engine. False: the engine did not take the item, which is done then.
  bool begin(Engine& engine, Work& work);
  /// Takes the engine's result for an item.
  void end(Work::InEngine::Tag& tag, Result<Emission> result);
  /// Whether all items are done; then `work.out` has what they gave.
  bool is_done(Work& work);

  /// Whether a combining stage holds items that it has not given yet. To be called while the stage
  /// is not running.
  [[nodiscard]] bool holds() const { return !held_.empty(); }
  /// Drops the items that a combining stage holds.
  void cancel_held();

 private:
  [[nodiscard]] bool makes() const { return items_ == nullptr && combine_ == nullptr; }
  [[nodiscard]] bool is_lost(const Work& work, std::size_t i) const;
  [[nodiscard]] std::size_t input_of(const Work& work) const;
  bool settle(Work& work, Item& item, Result<Emission>& result, Item& out) const;
  void fail(const Origins& origins, const ItemError& error, std::uint64_t given = 0) const;
  void settle_outputs(Work& work, const Item& item, std::vector<Leaving>& outputs) const;
  bool add(Item& item);
  void give_batch(Work& work);
  void note_next_part(Work& work, const Emission& given) const;
  void abort_run(Work& work);

  TaskGraph& graph_;
  const int node_;
  const std::string &name_, &written_;
  const Stage& stage_;
  // The interface by which the stage is called; both are null for a source, which SourceFeed calls.
  ItemStage* const items_;
  CombineStage* const combine_;
  const std::vector<PlanInput>& inputs_;
  const bool cuts_, pairs_, divides_, splits_, must_give_ends_;
  const std::uint64_t block_step_;  // of Origin::block, between two blocks given for one
  bool is_last_ = false;
  Origins held_;
};

}  // namespace melflow
