// Optional abilities: a stage's class derives from its kind and from any of these. The abilities of
// a stage are detected once, when the plan is made (StageFaces).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/stage/stage.h"

namespace melflow {

/// The stage's items are processed by an engine instead of run().
class HasEngine {
 public:
  /// Makes an engine for at most `concurrency` items at a time; null: these options need no engine.
  /// Called once, after the plan is complete.
  [[nodiscard]] virtual std::unique_ptr<Engine> engine(int concurrency) = 0;

 protected:
  ~HasEngine() = default;
};

/// The state of a filling pass.
struct Filling {
  /// The bytes of the run's memory budget that the stage may take and keep to the end of the run.
  std::size_t memory = 0;
  /// Ends the pass early, when nothing more needs to come. May be called from any thread.
  std::function<void()> end;
};

/// The stage is filled by a pass before the main run: the nodes from the source to this one, which
/// must not branch, run alone over all source items. That pass records nothing in the ledger.
class FillingPass {
 public:
  /// Returns whether such a pass is needed. Called after all stages have started. `filling` stays
  /// valid until filled().
  [[nodiscard]] virtual bool begin_filling(Filling& filling) = 0;
  /// Called after the pass.
  virtual void filled(RunContext& run) = 0;

 protected:
  ~FillingPass() = default;
};

/// A stage in which items may wait for other items. Waiting items keep their memory but no token.
/// The run asks these stages to drop items when it waits for memory, so every such stage must
/// derive from this.
class HoldsItems {
 public:
  /// Drops waiting items; called after the last item, before any stage's finish(). This closes
  /// their records in the ledger, which calls all listeners.
  virtual void drop_waiting() = 0;
  /// Drops items that wait for an item which was lost in an earlier node; the stage is not told of
  /// such losses. Called when nothing moves and work waits for memory, and at the end of the run,
  /// for all stages before drop_waiting() of any.
  virtual void drop_lost() {}

 protected:
  ~HoldsItems() = default;
};

/// A sink that may not get some items although others take them: a route leads elsewhere, or a node
/// of its branch could not process them.
class NotesLeftOut {
 public:
  /// Called once for each such item, before its record in the ledger is closed as ok. From any
  /// thread; must not throw.
  virtual void left_out(std::size_t index, int stage, const ItemError& why) = 0;

 protected:
  ~NotesLeftOut() = default;
};

/// A sink whose output may exist already, in whole or in part.
class Resumes {
 public:
  /// Called for all such sinks before look().
  virtual void announce(RunContext& run) = 0;
  /// Finds out which output of an earlier run there is. Called before the source starts, which may
  /// need to know.
  virtual void look(RunContext& run) = 0;
  /// The number of leading items that are done; nullopt if the sink keeps nothing that could be
  /// missing. Changes nothing yet. Called when all stages have started, by the run's first thread.
  [[nodiscard]] virtual std::optional<std::size_t> resumable(RunContext& run) = 0;
  /// Closes the ledger records of the first `done` items, unless another sink of the run did.
  /// `done` is at most the result of resumable(); 0 if the run starts afresh.
  virtual void begin(RunContext& run, std::size_t done) = 0;

 protected:
  ~Resumes() = default;
};

/// Passes on items of any of the ports that it knows. Its traits have a payload type for `in` and
/// `out` that stands for any of them.
class PassesAny {
 public:
  /// Sets the type of the input; called before plan().
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
  /// Reports before the run if that memory will not fit into `host` bytes, of which everything else
  /// needs at least `others`. Called after plan().
  virtual void check_memory(std::size_t /*host*/, std::size_t /*others*/,
                            PlanCheck& /*check*/) const {}

 protected:
  ~KeepsMemory() = default;
};

/// The source can prefetch items.
class MakesAhead {
 public:
  /// Whether item() may be called from several threads at once, each with different indices; for
  /// items that a stopped run never uses; and a second time for an index after it threw.
  [[nodiscard]] virtual bool makes_ahead() const = 0;

 protected:
  ~MakesAhead() = default;
};

/// A source that allows others of its stage in the graph: they run as one that lists the items of
/// all of them. StageInfo::options_of_run names the options that must be equal.
class UnitesSources {
 public:
  struct Named {
    std::string name;  ///< of the node
    SourceStage* source = nullptr;
  };
  /// Makes one source, of this class, with the items of all `sources`; it keeps no reference to
  /// them. The given sources themselves only take part in Stage::plan(), before the united one:
  /// they are not started and make no items. Called once, on the first of them, when the plan is
  /// made.
  [[nodiscard]] virtual std::unique_ptr<SourceStage> unite(const std::vector<Named>& sources) = 0;
  /// For a united source: which of the sources the item comes from.
  [[nodiscard]] virtual std::size_t source_of(std::size_t index) const = 0;

 protected:
  ~UnitesSources() = default;
};

class PairedInputs;

/// A stage's interfaces, null for those that it lacks. The first three are its kind.
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
  PairedInputs* paired = nullptr;
};

}  // namespace melflow
