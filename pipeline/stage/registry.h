// The stages by name. A stage registers itself with one line in its own file:
//
//   const RegisterStage<Gain, GainOptions> registered{"gain", "Scales samples by a fixed gain."};
//
// Libraries with stages are linked as object libraries, so that no linker drops these lines.
// Plug-ins: config/plugins.h.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/options/schema.h"
#include "pipeline/stage/stage_kinds.h"

namespace melflow {

/// A node as written in the configuration.
struct NodeSpec {
  std::string name;
  Mark mark;
  Value options;  ///< a map of NodeOptions (plan.h) and the stage's own options
};

/// The options of one node: read them through the schema, then make the stage.
class StageConfig {
 public:
  virtual ~StageConfig() = default;
  virtual const Schema& schema() const = 0;
  virtual std::unique_ptr<Stage> make() const = 0;
};

/// A node that a source inserts after the last node whose output is `port`: it takes that output,
/// and the nodes that took it before take the new node's. Its options have no `from`.
struct Insertion {
  PortType port;
  NodeSpec node;
};

/// What a node that is written out gets, and where it says what is wrong or assumed.
struct WritingOut {
  std::vector<const NodeSpec*> before;  ///< the nodes upstream of it, nearest first
  Problems& problems;
  std::vector<Problem>& notes;
};

struct StageInfo {
  std::string name;
  std::string summary;
  std::string plugin;  ///< the plug-in that it was loaded from; "": it is built in
  /// Whether its options can change a value of the output, which makes them feature settings.
  bool affects_features = false;
  StageTraits traits;
  /// Whether a node of this stage is inserted where one is missing (missing_nodes.h).
  bool is_put_in = false;
  /// Whether it runs code that the configuration names.
  bool runs_code = false;
  /// The name in the feature settings, equal for stages that make the same features; "": its own.
  std::string feature_stage;
  std::function<std::unique_ptr<StageConfig>()> configure;
  /// Returns the chain of nodes that a node of this stage stands for, in the order of the data,
  /// each taking the output of the one before. One of them has the node's name; nodes that take its
  /// output get that of the last one. Options are not checked yet. Empty: no expansion.
  std::function<std::vector<NodeSpec>(const NodeSpec&)> expand;
  /// Returns the nodes that take the place of a node which names a file that says what they are, in
  /// the order of the data, one of them with the node's name; each but the first takes from the one
  /// before. Unlike those of `expand` they are the configuration that is stored. Empty: it stays.
  std::function<std::vector<NodeSpec>(const NodeSpec&, WritingOut&)> write_out;
  /// For a source: returns the nodes to insert for it, in the order of the data. Options are not
  /// checked yet. Empty: none.
  std::function<std::vector<Insertion>(const NodeSpec&)> insert;
  /// For a source that allows others of its stage in the graph (UnitesSources): the options that
  /// must be equal in all of them because they apply to the whole run.
  std::optional<std::vector<std::string>> options_of_run;
  /// Returns the names of the outputs of a stage that has several. Options are not checked yet. The
  /// function may be empty, and so may its result.
  std::function<std::vector<std::string>(const NodeSpec&)> outputs;
  /// The ports that the stage knows, if it passes any of them on (PassesAny); else empty.
  std::vector<PortType> ports;
};

template <class S>
concept ExpandsNodes = requires(const NodeSpec& spec) {
  { S::expand(spec) } -> std::same_as<std::vector<NodeSpec>>;
};

template <class S>
concept WritesOutNodes = requires(const NodeSpec& spec, WritingOut& writing) {
  { S::write_out(spec, writing) } -> std::same_as<std::vector<NodeSpec>>;
};

template <class S>
concept InsertsNodes = requires(const NodeSpec& spec) {
  { S::insert(spec) } -> std::same_as<std::vector<Insertion>>;
};

template <class S>
concept HasOptionsOfRun = requires {
  { S::options_of_run() } -> std::same_as<std::vector<std::string>>;
};

template <class S>
concept NamesOutputs = requires(const NodeSpec& spec) {
  { S::outputs(spec) } -> std::same_as<std::vector<std::string>>;
};

template <class S>
concept KnowsPorts = requires {
  { S::ports() } -> std::same_as<std::vector<PortType>>;
};

/// Registering a stage uses this symbol, whose name differs for another C++ library or its debug
/// mode, so the loader refuses a plug-in that was compiled with one.
template <class...>
void check_abi();
template <>
void check_abi<std::string, std::vector<int>>();

/// All stages. Static initialisation adds to it, that of plug-ins also while main() runs; an entry
/// stays where it is. Any thread may call any function.
class Registry {
 public:
  static Registry& global();
  /// Throws std::logic_error if there is a stage of that name.
  void add(StageInfo info);
  /// Calls `load` and returns the stages that it would have added.
  [[nodiscard]] std::vector<StageInfo> added_by(const std::function<void()>& load);
  [[nodiscard]] const StageInfo* find(const std::string& name) const;
  /// Adds other names by which stages are known; `names` must live as long as the program.
  void other_names(std::span<const OtherName> names) {
    other_names_.insert(other_names_.end(), names.begin(), names.end());
  }
  /// Returns a hint for an unknown stage name: the stage known by that name elsewhere, else one
  /// that differs only in case or is similar; "" if there is none.
  [[nodiscard]] std::string advice_on(const std::string& name) const;
  /// All stages, sorted by name.
  [[nodiscard]] std::vector<const StageInfo*> all() const;
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::vector<std::unique_ptr<StageInfo>> stages_;
  std::vector<StageInfo>* taken_ = nullptr;  // gets added stages during added_by()
  std::vector<OtherName> other_names_;
};

/// The options of stages that have none of their own.
struct NoOptions {
  void describe(Schema&) {}
};

template <class S, class Options>
class RegisterStage {
 public:
  RegisterStage(std::string name, std::string summary, bool affects_features = false) {
    check_abi<std::string, std::vector<int>>();
    StageInfo info;
    info.name = std::move(name);
    info.summary = std::move(summary);
    info.affects_features = affects_features;
    if constexpr (requires { S::kFeatureStage; }) info.feature_stage = S::kFeatureStage;
    if constexpr (ExpandsNodes<S>) info.expand = S::expand;
    if constexpr (WritesOutNodes<S>) info.write_out = S::write_out;
    if constexpr (InsertsNodes<S>) info.insert = S::insert;
    if constexpr (HasOptionsOfRun<S>) info.options_of_run = S::options_of_run();
    if constexpr (NamesOutputs<S>) info.outputs = S::outputs;
    if constexpr (KnowsPorts<S>) info.ports = S::ports();
    if constexpr (requires { S::kIsPutIn; }) info.is_put_in = S::kIsPutIn;
    if constexpr (requires { S::kRunsCode; }) info.runs_code = S::kRunsCode;
    info.traits = S(Options{}).traits();
    info.configure = [] { return std::make_unique<Config>(); };
    Registry::global().add(std::move(info));
  }

 private:
  struct Config final : StageConfig {
    Config() { options.describe(bound); }
    const Schema& schema() const override { return bound; }
    std::unique_ptr<Stage> make() const override { return std::make_unique<S>(options); }
    Options options;
    Schema bound;
  };
};

}  // namespace melflow
