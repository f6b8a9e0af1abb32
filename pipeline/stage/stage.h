// The base of all stages (Stage), and the interfaces by which the graph calls them: to make items
// (SourceStage), to take them one by one (ItemStage), or to collect them (CombineStage). Stages
// derive from the typed kinds in stage_kinds.h; optional abilities are in stage_abilities.h.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

#include "pipeline/stage/engine.h"
#include "pipeline/stage/facts.h"
#include "pipeline/stage/run_context.h"

namespace melflow {

enum class StageKind { source, transform, combine, sink };

/// The type of the payloads that cross an edge.
struct PortType {
  std::type_index type = typeid(void);
  const char* name = "";
  friend bool operator==(const PortType& a, const PortType& b) { return a.type == b.type; }
};

template <class T>
PortType port_type() {
  return {typeid(T), T::kName};
}

/// How a stage depends on the order of the blocks of one stream.
enum class BlockOrder {
  needed,  ///< one at a time, in order; a plan that cannot ensure that is refused
  kept,    ///< one at a time, in the order of arrival, whatever that is
  any      ///< several at once, in any order: every block has its position in the stream
};

/// Properties of a stage that do not depend on its options.
struct StageTraits {
  StageKind kind = StageKind::transform;
  PortType in = {}, out = {};
  /// The types of its inputs and of its named outputs, in their order, where there are several;
  /// `in` and `out` are the first of them. None: all are of one type.
  std::vector<PortType> ins = {}, outs = {};
  BlockOrder order = BlockOrder::needed;
  /// The largest number of items that may be processed at once; 0: any number.
  int max_concurrency = 0;
  /// Whether it takes the outputs of several nodes, only one of which yields each item.
  bool joins = false;
  /// Whether it takes the outputs of several nodes, each of which yields every item (SideBySide,
  /// Join).
  bool pairs = false;
  /// Whether an item leaves by several of its named outputs (ItemContext::outputs), else by one.
  bool splits = false;
  /// Whether one input may yield several blocks; all but the first have to wait for memory.
  bool expands = false;
  /// For a stage that expands: whether its outputs are sub-items (SubItem) of one or more pieces.
  bool divides = false;
  /// Whether it cuts incoming streams into parts, one after the other, each the stream of a record
  /// of its own (Stream::begin_part). Every payload waits for its own memory. No node before it may
  /// branch.
  bool cuts = false;
  /// Whether it takes pieces of sub-items (SubItem) as well as those of whole recordings.
  bool takes_sub_items = true;
  /// Whether its outputs hold a scarce resource (a slot of a device), so that further items wait
  /// inside a stage until a later stage has returned it.
  bool lends = false;
};

/// The type that a stage takes by its input number `input`.
inline PortType input_port(const StageTraits& traits, std::size_t input) {
  return input < traits.ins.size() ? traits.ins[input] : traits.in;
}

/// Properties of a stage that depend on its options alone.
struct StageResources {
  /// Whether its output holds its input and no other memory of the budget, so that output_bound is
  /// passed on but not charged.
  bool passes_on = false;
  /// Whether process() waits for a device, and so runs on `concurrency` threads of its own instead
  /// of workers.
  bool blocking = false;
  /// The number of items processed at once if the configuration does not set it; 0: the number of
  /// workers.
  int default_concurrency = 0;
  /// For a source whose items take long to get: how many the next stage, which waits for them, gets
  /// at once if the configuration does not set its concurrency; 0: it need not wait.
  int waits_for = 0;
  /// The paths of the files that it will make. No two nodes may make the same file.
  std::vector<std::string> files_made = {};
  /// The option that limits output_bound, for messages; "" for none.
  const char* size_option = "";
};

/// Collects the problems that a stage finds in the plan.
class PlanCheck {
 public:
  using Report = std::function<void(const std::string& option, const std::string& message)>;
  PlanCheck(Report error, Report warning, Report note)
      : error_(std::move(error)), warning_(std::move(warning)), note_(std::move(note)) {}
  /// Reports a problem with the option named `option`; "": with the node itself.
  void error(const std::string& option, const std::string& message) { error_(option, message); }
  void warning(const std::string& option, const std::string& message) { warning_(option, message); }
  /// Reports a warning that does not concern values of the output, so outputs do not record it.
  void note(const std::string& option, const std::string& message) { note_(option, message); }

 private:
  Report error_, warning_, note_;
};

/// Information about a source item before it is admitted.
struct SourceInfo {
  std::string_view name;  ///< as in the report; a path
  std::size_t bytes = 0;  ///< size on disk; of a packed member of an archive, unpacked
  std::size_t held = 0;   ///< further bytes that are in memory while it is read
};

/// The interface of all stages.
/// Threads: all functions here from the first thread of the run, except output_bound() and
/// traits(), which any thread may call during the run. When run(), add() or item() of the kinds
/// below is called, and by how many threads at once, is in StageTraits::max_concurrency and at the
/// kind.
/// Lifetime: made by the plan, destroyed with it, after every payload that it made for the graph.
/// Errors: plan() reports to PlanCheck; RunError and std::bad_alloc end the run; any other
/// exception in the call for an item fails that item alone.
class Stage {
 public:
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  virtual ~Stage() = default;

  [[nodiscard]] const StageTraits& traits() const { return traits_; }
  [[nodiscard]] virtual StageResources resources() const { return {}; }

  /// Returns the requirements of this stage for those before it, given those of the stages after
  /// it. Called before the run, from the sinks up.
  [[nodiscard]] virtual Requirements require(const Requirements& below) const { return below; }
  /// Checks the stage against its input and the requirements of later stages; returns the
  /// properties of its output. Called after require(), from the source down.
  virtual Properties plan(const Properties& given, const Requirements& /*required*/,
                          PlanCheck& /*check*/) {
    return given;
  }
  /// The settings that can change a value of the output, in a form that is equal for equal results.
  /// Nullopt: the options as given, without tuning options; null: it changes no value, and is not
  /// among the settings. Called after plan().
  [[nodiscard]] virtual std::optional<Value> settings() const { return std::nullopt; }
  /// The same in a form that does not depend on later stages; it names what is stored between
  /// stages.
  [[nodiscard]] virtual std::optional<Value> settings_alone() const { return settings(); }
  /// The largest size in bytes of one output block, given the bound of the input. Stages must keep
  /// to it: admission charges the sum over all stages. The report warns of a stage that exceeds it.
  [[nodiscard]] virtual std::size_t output_bound(const SourceInfo& /*source*/,
                                                 std::size_t input_bytes) const {
    return input_bytes;
  }
  /// The most bytes of a stream that it keeps between two blocks, given the bound of the input.
  /// Only for stages that cut or divide streams; what others keep is part of their output_bound.
  [[nodiscard]] virtual std::size_t keeps_of_stream(std::size_t /*input_bytes*/) const { return 0; }

  /// Prepares for the first item; throws RunError if the run cannot start. The source starts first.
  /// The other stages may close records of the ledger; those items do not run.
  virtual void start(RunContext& /*run*/) {}
  /// Ends the stage's work after the last item, in graph order. Throws RunError if the output
  /// cannot be completed.
  virtual void finish(RunContext& /*run*/, Ending /*ending*/) {}
  /// Names and values, for the report, of things that the stage made or chose.
  [[nodiscard]] virtual std::vector<std::pair<std::string, Value>> summary() const { return {}; }
  /// A warning for the report about an option that was not applied as given, with the value used
  /// and the reason: "files: 3072 ...". Called after finish(). "" if there is none, or if plan()
  /// reported it.
  [[nodiscard]] virtual std::string not_kept() const { return {}; }

  /// Whether the input consists of pieces of sub-items (SubItem), not of whole recordings. Set by
  /// the graph builder, before plan().
  [[nodiscard]] bool gets_sub_items() const { return gets_sub_items_; }
  void set_gets_sub_items(bool gets) { gets_sub_items_ = gets; }

  /// The settings of all stages from the source to this one that can change a value of its output:
  /// a list in the order of the data. Set by the graph builder.
  [[nodiscard]] const Value& feature_settings() const { return feature_settings_; }
  void set_feature_settings(Value settings) { feature_settings_ = std::move(settings); }
  /// Likewise of settings_alone().
  [[nodiscard]] const Value& settings_up_to() const { return settings_up_to_; }
  void set_settings_up_to(Value settings) { settings_up_to_ = std::move(settings); }

 protected:
  explicit Stage(StageTraits traits) : traits_(std::move(traits)) {}
  StageTraits traits_;  ///< the traits of the kind; changed only in a constructor

 private:
  bool gets_sub_items_ = false;
  Value feature_settings_, settings_up_to_;
};

struct SourceItem {
  std::shared_ptr<const void> payload;
  SourceInfo info;
  /// The number of ledger records it stands for, from its index on. More than one only if a later
  /// stage cuts it into parts.
  std::size_t records = 1;
};

/// Makes items by index. Their number and names do not change after start().
class SourceStage : public Stage {
 public:
  /// The number of records in the ledger, and so of indices.
  [[nodiscard]] virtual std::size_t count() const = 0;
  /// Makes the item that begins with the record `index`. One call at a time, unless the stage
  /// MakesAhead (stage_abilities.h).
  [[nodiscard]] virtual SourceItem item(std::size_t index) = 0;
  [[nodiscard]] virtual std::string name(std::size_t index) const = 0;
  /// An item that takes as little memory as any can, for use before the items are known; nullopt if
  /// unknown.
  [[nodiscard]] virtual std::optional<SourceInfo> least_item() const { return std::nullopt; }
  /// The memory that the index takes [bytes]; charged to the budget.
  [[nodiscard]] virtual std::size_t index_bytes() const { return 0; }

 protected:
  using Stage::Stage;
};

/// Takes items one by one: transforms and sinks.
class ItemStage : public Stage {
 public:
  /// Processes an item; called from several threads at once, as far as the traits allow. `cursor`:
  /// the state that the stage left there when it had more output for the same item; null at first.
  virtual Result<Emission> run(const Item& item, std::unique_ptr<StageState>& cursor,
                               ItemContext& context) = 0;

 protected:
  using Stage::Stage;
};

/// Combines several items into one. One call at a time.
class CombineStage : public Stage {
 public:
  /// Adds an item; returns true when the combined item is full and should be taken. After an error
  /// or an exception the item is not added, and fails alone.
  virtual Result<bool> add(const Item& item, ItemContext& context) = 0;
  /// Returns the combined item; the parts of `context` are the added items, in that order. An error
  /// or an exception fails all of them; the next add() begins a new combined item.
  virtual Result<Emission> take(ItemContext& context) = 0;
  /// The largest number of items it combines, as far as its options limit it.
  [[nodiscard]] virtual std::size_t most_items() const { return 1; }

 protected:
  using Stage::Stage;
};

}  // namespace melflow
