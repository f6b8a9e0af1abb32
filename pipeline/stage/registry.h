// The stages by name. A stage registers itself with one line in its own file:
//
//   const RegisterStage<Gain, GainOptions> registered{"gain", "Scales samples by a fixed gain."};
//
// Libraries with stages are linked as object libraries, so that no linker drops these lines.
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

/// A node as it was written.
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

/// A node that a source inserts behind the last node whose output is `port`: it takes that output
/// and passes it on to the nodes that took it before. Its options have no `from`.
struct Insertion {
  PortType port;
  NodeSpec node;
};

struct StageInfo {
  std::string name;
  std::string summary;
  /// Whether its options can change a value of the output and so belong to the feature settings.
  bool affects_features = false;
  StageTraits traits;
  /// A node of it is put in where one is missing (missing_nodes.h).
  bool is_put_in = false;
  /// The name that it has in the feature settings, where stages that make the same features have
  /// the same name; "": its own.
  std::string feature_stage;
  std::function<std::unique_ptr<StageConfig>()> configure;
  /// Gives the chain of nodes that a node of this stage stands for, in the order of the data, each
  /// taking the output of the one before it. One of them has the node's name; nodes that take its
  /// output get that of the last one. Options are not checked yet. Empty: a node stands for itself.
  std::function<std::vector<NodeSpec>(const NodeSpec&)> expand;
  /// For a source: gives the nodes to be inserted for it, in the order of the data. Options are not
  /// checked yet. Empty: none.
  std::function<std::vector<Insertion>(const NodeSpec&)> insert;
  /// For a source that others of its stage may stand beside (UnitesSources): the options that have
  /// to be equal in all of them, since they are the whole run's.
  std::optional<std::vector<std::string>> options_of_run;
  /// May be empty, as what it gives may be: the names of its outputs, where it has several. Options
  /// are not checked yet.
  std::function<std::vector<std::string>(const NodeSpec&)> outputs;
  /// The ports that it knows, where it hands on what comes (PassesAny); else none.
  std::vector<PortType> ports;
};

template <class S>
concept ExpandsNodes = requires(const NodeSpec& spec) {
  { S::expand(spec) } -> std::same_as<std::vector<NodeSpec>>;
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

/// All stages. Constant once main() runs: only static initialisation adds to it.
class Registry {
 public:
  static Registry& global();
  void add(StageInfo info);
  [[nodiscard]] const StageInfo* find(const std::string& name) const;
  /// Sets the names that others have for stages; `names` must live as long as the program.
  void other_names(std::span<const OtherName> names) {
    other_names_.insert(other_names_.end(), names.begin(), names.end());
  }
  /// The hint for a name that no stage has: the stage that is called so elsewhere, else one that
  /// differs in case only or is near; "" without any.
  [[nodiscard]] std::string advice_on(const std::string& name) const;
  /// All stages, sorted by name.
  [[nodiscard]] std::vector<const StageInfo*> all() const;
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::vector<std::unique_ptr<StageInfo>> stages_;
  std::vector<OtherName> other_names_;
};

template <class S, class Options>
class RegisterStage {
 public:
  RegisterStage(std::string name, std::string summary, bool affects_features = false) {
    StageInfo info;
    info.name = std::move(name);
    info.summary = std::move(summary);
    info.affects_features = affects_features;
    if constexpr (requires { S::kFeatureStage; }) info.feature_stage = S::kFeatureStage;
    if constexpr (ExpandsNodes<S>) info.expand = S::expand;
    if constexpr (InsertsNodes<S>) info.insert = S::insert;
    if constexpr (HasOptionsOfRun<S>) info.options_of_run = S::options_of_run();
    if constexpr (NamesOutputs<S>) info.outputs = S::outputs;
    if constexpr (KnowsPorts<S>) info.ports = S::ports();
    if constexpr (requires { S::kIsPutIn; }) info.is_put_in = S::kIsPutIn;
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
