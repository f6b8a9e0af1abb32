// What some stages can do beside what their kind does: a class derives from its kind and from any
// of these. Which ones a stage has is found once, when the plan is made (StageFaces).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "pipeline/stage.h"

namespace melflow {

/// Items are not processed by run() but begun and collected in an engine.
class HasEngine {
 public:
  /// Has at most `concurrency` items at a time. Asked once, after the plan is complete. Null: no
  /// engine with these options.
  [[nodiscard]] virtual std::unique_ptr<Engine> engine(int concurrency) = 0;

 protected:
  ~HasEngine() = default;
};

/// A filling pass while it is under way.
struct Filling {
  /// What the stage may take of the run's budget and keep to its end [bytes].
  std::size_t memory = 0;
  /// Nothing more needs to come. From any thread.
  std::function<void()> end;
};

/// Keeps what the run proper needs: before it the nodes from the source to this one, between which
/// there is no branch, run by themselves over all source items. Nothing of that pass is in the
/// ledger.
class FillingPass {
 public:
  /// After all stages have started. False: no such pass. `filling` stays until filled().
  [[nodiscard]] virtual bool begin_filling(Filling& filling) = 0;
  /// After that pass.
  virtual void filled(RunContext& run) = 0;

 protected:
  ~FillingPass() = default;
};

/// Has items wait here for others.
class HoldsItems {
 public:
  /// After the last item, before any stage's finish(): lets go of them. That closes their records in
  /// the ledger, which tells every listener.
  virtual void drop_waiting() = 0;

 protected:
  ~HoldsItems() = default;
};

/// Keeps memory beside the items.
class KeepsMemory {
 public:
  /// Bytes that it keeps at most, with `concurrency` items at a time; they count in the budget.
  /// Asked once the source has its index, before start().
  [[nodiscard]] virtual std::size_t kept_memory(const RunContext& run, int concurrency) const = 0;

 protected:
  ~KeepsMemory() = default;
};

/// A source that can do more than make its items one after the other.
class MakesAhead {
 public:
  /// True: item() is called from several threads at once, each with other indices, and for items
  /// that a run which is stopped never comes to; also after a call for the same index that threw.
  [[nodiscard]] virtual bool makes_ahead() const = 0;

 protected:
  ~MakesAhead() = default;
};

/// A stage by what it is and can do; null for what it is not. The first three are its kind.
struct StageFaces {
  StageFaces() = default;
  explicit StageFaces(Stage& stage);

  SourceStage* source = nullptr;
  ItemStage* items = nullptr;
  CombineStage* combine = nullptr;

  HasEngine* engine = nullptr;
  FillingPass* filling = nullptr;
  HoldsItems* holds = nullptr;
  KeepsMemory* keeps = nullptr;
  MakesAhead* ahead = nullptr;
};

}  // namespace melflow
