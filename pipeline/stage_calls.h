// How a node's stage is called with what was sent to the node: item by item, an error of one being
// the error of its files alone, and what is used up given back at once.
#pragma once

#include <string>

#include "pipeline/node_places.h"
#include "pipeline/stage_abilities.h"
#include "pipeline/work.h"

namespace melflow {

class TaskGraph;

class StageCalls {
 public:
  StageCalls(TaskGraph& graph, int node, const std::string& name, const StageFaces& stage);

  /// Nobody takes what it gives: an item is done when it is through with it.
  void be_last() { is_last_ = true; }

  /// What of the items is left when the stage has given what it could at once.
  enum class Rest {
    none,
    block,  ///< a further block of the item at hand, for which memory is needed
    items   ///< further items
  };
  struct Outcome {
    Rest rest = Rest::none;
    Passed in;
  };
  /// Appends to `work.out`. What is an error of the whole run is told to the graph.
  Outcome run(Work& work);
  /// Hands the next item to an engine. False: it did not take it, which is done then.
  bool begin(Engine& engine, Work& work, Passed& in);
  /// What became of it.
  void end(Work::Begun& tag, Result<Emission> result);
  /// Whether all items are done; then what they gave is in `work.out`.
  bool is_done(Work& work);

  /// Items that a combining stage has taken in and not given on. Asked while nothing runs.
  [[nodiscard]] bool holds() const { return !held_.empty(); }
  /// Drops them.
  void cancel_held();

 private:
  [[nodiscard]] bool makes() const { return items_ == nullptr && combine_ == nullptr; }
  bool settle(Work& work, Item& item, Result<Emission>& result, Item& out) const;
  void give_batch(Work& work);
  void break_run(Work& work);

  TaskGraph& graph_;
  const int node_;
  const std::string& name_;
  // By which the stage is called; null both for a source, whose items TaskFiles asks for.
  ItemStage* const items_;
  CombineStage* const combine_;
  bool is_last_ = false;
  Origins held_;
};

}  // namespace melflow
