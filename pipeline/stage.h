// What every stage is (Stage), and how the graph calls it: for items that it makes (SourceStage),
// one by one (ItemStage), or to collect them (CombineStage). Stages derive from the typed kinds in
// stage_kinds.h; what only some can do beside that is in stage_abilities.h.
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

#include "pipeline/engine.h"
#include "pipeline/facts.h"
#include "pipeline/run_context.h"

namespace melflow {

enum class StageKind { source, transform, combine, sink };

/// What crosses an edge: a type of payload.
struct PortType {
  std::type_index type = typeid(void);
  const char* name = "";
  friend bool operator==(const PortType& a, const PortType& b) { return a.type == b.type; }
};

template <class T>
PortType port_type() {
  return {typeid(T), T::kName};
}

/// What a stage is, whatever its options.
struct StageTraits {
  StageKind kind = StageKind::transform;
  PortType in = {}, out = {};
  /// Blocks of one stream pass one at a time and in order. Off where every block says for itself
  /// which part of its stream it is.
  bool in_order = true;
  /// 0: any.
  int max_concurrency = 0;
  /// Gives several blocks for one input; the further ones have to wait for memory.
  bool expands = false;
  /// What it gives holds something of which there are few (a slot of a device), and the next items
  /// wait inside a stage until a later one has given it back.
  bool lends = false;
};

/// What follows from a stage's options alone.
struct StageResources {
  /// What leaves holds what came in and no other memory of the budget, so that output_bound is
  /// handed on but not charged.
  bool passes_on = false;
  /// process() waits for a device, so it runs on `concurrency` threads of its own instead of holding
  /// a worker.
  bool blocking = false;
  /// How many items are processed at once where the configuration does not say; 0: as many as there
  /// are workers.
  int default_concurrency = 0;
  /// Paths of the files that it will make. No two nodes may make the same one.
  std::vector<std::string> files_made = {};
  /// The option that bounds output_bound, for messages; "" for none.
  const char* size_option = "";
};

/// Collects what a stage finds wrong with its place in the plan.
class PlanCheck {
 public:
  using Report = std::function<void(const std::string& option, const std::string& message)>;
  PlanCheck(Report error, Report warning)
      : error_(std::move(error)), warning_(std::move(warning)) {}
  /// `option` places the message at that key ("" for the node itself).
  void error(const std::string& option, const std::string& message) { error_(option, message); }
  void warning(const std::string& option, const std::string& message) { warning_(option, message); }

 private:
  Report error_, warning_;
};

/// What the admission knows of a source item.
struct SourceInfo {
  std::string_view name;  ///< as in the report; a path
  std::size_t bytes = 0;  ///< size on disk
};

/// What every stage says of itself, and is told of the run.
class Stage {
 public:
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  virtual ~Stage() = default;

  [[nodiscard]] const StageTraits& traits() const { return traits_; }
  [[nodiscard]] virtual StageResources resources() const { return {}; }

  /// Before the run, from the sinks up: what has to be known or done before this stage, given what
  /// those behind it require.
  [[nodiscard]] virtual Requirements require(const Requirements& below) const { return below; }
  /// Then from the source down: checks the stage against what arrives and what those behind it
  /// require; returns the properties of what leaves.
  virtual Properties plan(const Properties& given, const Requirements& /*required*/,
                          PlanCheck& /*check*/) {
    return given;
  }
  /// After plan(): the settings that can change a value of the output, in the form that is equal
  /// for equal results. Nothing: the options as given, without those that are tuning only.
  [[nodiscard]] virtual std::optional<Value> settings() const { return std::nullopt; }
  /// Upper bound of the bytes one block leaving this stage takes, given the bound of what enters.
  /// Stages keep to it; admission charges the sum over all stages.
  [[nodiscard]] virtual std::size_t output_bound(const SourceInfo& /*source*/,
                                                 std::size_t input_bytes) const {
    return input_bytes;
  }

  /// Before the first item; throws RunError when the run cannot start. May close records of the ledger
  /// (not the source, which comes first): these items are not run.
  virtual void start(RunContext& /*run*/) {}
  /// At the end, in graph order. Throws RunError when the output cannot be completed.
  virtual void finish(RunContext& /*run*/, Ending /*ending*/) {}
  /// What it made or chose, for the report: name and value.
  [[nodiscard]] virtual std::vector<std::pair<std::string, Value>> summary() const { return {}; }

  /// What of the settings from the source to this stage can change a value of its output: a list,
  /// in the order of the data, of each stage's settings. Set by the graph builder.
  [[nodiscard]] const Value& feature_settings() const { return feature_settings_; }
  void set_feature_settings(Value settings) { feature_settings_ = std::move(settings); }

 protected:
  explicit Stage(const StageTraits& traits) : traits_(traits) {}
  StageTraits traits_;  ///< those of the kind; to be changed in a constructor only

 private:
  Value feature_settings_;
};

struct SourceItem {
  std::shared_ptr<const void> payload;
  SourceInfo info;
};

/// Makes items by index. After start() their number and names stay.
class SourceStage : public Stage {
 public:
  [[nodiscard]] virtual std::size_t count() const = 0;
  /// One call at a time, unless it MakesAhead (stage_abilities.h).
  [[nodiscard]] virtual SourceItem item(std::size_t index) = 0;
  [[nodiscard]] virtual std::string name(std::size_t index) const = 0;
  /// Bytes kept in memory for the index; charged to the budget.
  [[nodiscard]] virtual std::size_t index_bytes() const { return 0; }

 protected:
  using Stage::Stage;
};

/// Takes items one by one: transforms and sinks.
class ItemStage : public Stage {
 public:
  /// From several threads at once, within the traits. `cursor` is what the stage left there when it
  /// had more to give for the same item, null at first.
  virtual Result<Emission> run(const Item& item, std::unique_ptr<StageState>& cursor,
                               ItemContext& context) = 0;

 protected:
  using Stage::Stage;
};

/// Makes one item of several. One call at a time.
class CombineStage : public Stage {
 public:
  /// True when it is full and should be taken.
  virtual bool add(const Item& item) = 0;
  virtual Emission take() = 0;

 protected:
  using Stage::Stage;
};

}  // namespace melflow
