// Abilities that only some stages have: a stage's class derives from its kind and from any of
// these. The abilities of a stage are found once, when the plan is made (StageFaces).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/stage/stage.h"

namespace melflow {

/// The stage's items are not processed by run() but by an engine.
class HasEngine {
 public:
  /// Makes an engine for at most `concurrency` items at a time; null: no engine with these options.
  /// Called once, after the plan is complete.
  [[nodiscard]] virtual std::unique_ptr<Engine> engine(int concurrency) = 0;

 protected:
  ~HasEngine() = default;
};

/// The state of a filling pass.
struct Filling {
  /// The memory [bytes] of the run's budget that the stage may take and keep to the end of the run.
  std::size_t memory = 0;
  /// Ends the pass early, when nothing more needs to come. From any thread.
  std::function<void()> end;
};

/// The stage is filled by a pass before the run proper: the nodes from the source to this one,
/// which must not branch, run by themselves over all source items. Nothing of that pass is recorded
/// in the ledger.
class FillingPass {
 public:
  /// Whether there is to be such a pass; called after all stages have started. `filling` stays
  /// valid until filled().
  [[nodiscard]] virtual bool begin_filling(Filling& filling) = 0;
  /// Called after the pass.
  virtual void filled(RunContext& run) = 0;

 protected:
  ~FillingPass() = default;
};

/// Items may wait in the stage for other items.
class HoldsItems {
 public:
  /// Drops waiting items; called after the last item, before any stage's finish(). This closes
  /// their records in the ledger, which calls all listeners.
  virtual void drop_waiting() = 0;

 protected:
  ~HoldsItems() = default;
};

/// A sink that some items may not come to although others take them: a route leads elsewhere, or a
/// node of its branch could not process them.
class NotesLeftOut {
 public:
  /// Once for each such item, before its record in the ledger is closed as ok. From any thread;
  /// must not throw.
  virtual void left_out(std::size_t index, int stage, const ItemError& why) = 0;

 protected:
  ~NotesLeftOut() = default;
};

/// A sink that can go on where a run with the same output was interrupted.
class Resumes {
 public:
  /// How many items, from the first on, are done; nothing where the sink keeps nothing that could
  /// be missing. Changes nothing yet. Called when all stages have started, by the run's first
  /// thread.
  [[nodiscard]] virtual std::optional<std::size_t> resumable(RunContext& run) = 0;
  /// The first `done` items are: closes their records in the ledger, unless another sink of the run
  /// has done so. At most what resumable() gave; 0 where the run begins from the beginning.
  virtual void begin(RunContext& run, std::size_t done) = 0;

 protected:
  ~Resumes() = default;
};

/// Passes on items of any type among the ports that it knows: a type of payload for `in` and `out`
/// that stands for any of them is in its traits.
class PassesAny {
 public:
  /// Before plan(): what comes.
  virtual void set_port(PortType port) = 0;

 protected:
  ~PassesAny() = default;
};

/// The stage keeps memory beside that of the items.
class KeepsMemory {
 public:
  /// The most memory [bytes] that it keeps, with `concurrency` items at a time; charged to the
  /// budget. Called when the source has its index, before start().
  [[nodiscard]] virtual std::size_t kept_memory(const RunContext& run, int concurrency) const = 0;
  /// Reports what of it is known not to fit before the run, which has `host` bytes, of which all
  /// else needs `others` at least. Called after plan().
  virtual void check_memory(std::size_t /*host*/, std::size_t /*others*/,
                            PlanCheck& /*check*/) const {}

 protected:
  ~KeepsMemory() = default;
};

/// The source can make items before it is their turn.
class MakesAhead {
 public:
  /// True: item() may be called from several threads at once, each with other indices; for items
  /// that a stopped run never uses; and again for an index for which it threw.
  [[nodiscard]] virtual bool makes_ahead() const = 0;

 protected:
  ~MakesAhead() = default;
};

/// A source that others of its stage may stand beside in a graph: they run as one, which lists what
/// all of them do. Which of its options have to be equal then is in StageInfo::options_of_run.
class UnitesSources {
 public:
  struct Named {
    std::string name;  ///< of the node
    SourceStage* source = nullptr;
  };
  /// Makes the source of the items of all of these, of this class, which keeps nothing of theirs.
  /// They come before it in Stage::plan(), and neither start nor make an item. Called once, by the
  /// first of them, when the plan is made.
  [[nodiscard]] virtual std::unique_ptr<SourceStage> unite(const std::vector<Named>& sources) = 0;
  /// Of a united source: which of them the item comes from.
  [[nodiscard]] virtual std::size_t source_of(std::size_t index) const = 0;

 protected:
  ~UnitesSources() = default;
};

class SideBySide;

/// A stage's interfaces, null for those that it does not have. The first three are its kind.
struct StageFaces {
  StageFaces() = default;
  explicit StageFaces(Stage& stage);

  SourceStage* source = nullptr;
  ItemStage* items = nullptr;
  CombineStage* combine = nullptr;

  HasEngine* engine = nullptr;
  FillingPass* filling = nullptr;
  HoldsItems* holds = nullptr;
  NotesLeftOut* left_out = nullptr;
  Resumes* resumes = nullptr;
  PassesAny* passes = nullptr;
  KeepsMemory* keeps = nullptr;
  MakesAhead* ahead = nullptr;
  UnitesSources* unites = nullptr;
  SideBySide* side_by_side = nullptr;
};

}  // namespace melflow
