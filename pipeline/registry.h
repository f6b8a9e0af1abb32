// Stage names and what is behind them. A stage registers itself with one line in its own file:
//
//   const RegisterStage<Gain, GainOptions> registered{"gain", "Scales samples by a fixed gain."};
//
// Libraries with stages are linked as object libraries, so that no linker drops these lines.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/schema.h"
#include "pipeline/stage_kinds.h"

namespace melflow {

/// A node as it was written.
struct NodeSpec {
  std::string name;
  Mark mark;
  Value options;  ///< a map: NodeOptions (plan.h) and the stage's own
};

/// The options of one node: read them through the schema, then make the stage.
class StageConfig {
 public:
  virtual ~StageConfig() = default;
  virtual const Schema& schema() const = 0;
  virtual std::unique_ptr<Stage> make() const = 0;
};

/// A node that a source has put behind the last node that gives `port`: it takes what that one gives
/// and hands it on to whoever took it before. Its options have no `from`.
struct Insertion {
  PortType port;
  NodeSpec node;
};

struct StageInfo {
  std::string name;
  std::string summary;
  /// Its options can change a value of the output: they go into the feature settings.
  bool affects_features = false;
  StageTraits traits;
  /// The stage that it stands for in the feature settings, where what makes the same features is
  /// the same; empty: itself.
  std::string feature_stage;
  std::function<std::unique_ptr<StageConfig>()> configure;
  /// May be empty. The chain of nodes that such a node really is, in the order of the data, each
  /// taking the one before it: one of them has the node's name, and who takes that node's output
  /// gets the last one's. Options are not checked yet.
  std::function<std::vector<NodeSpec>(const NodeSpec&)> expand;
  /// Of a source, may be empty: the nodes that go with it as it is written, in the order of the
  /// data. Options are not checked yet.
  std::function<std::vector<Insertion>(const NodeSpec&)> insert;
};

template <class S>
concept ExpandsNodes = requires(const NodeSpec& spec) {
  { S::expand(spec) } -> std::same_as<std::vector<NodeSpec>>;
};

template <class S>
concept InsertsNodes = requires(const NodeSpec& spec) {
  { S::insert(spec) } -> std::same_as<std::vector<Insertion>>;
};

/// Constant once main() runs: only static initialisation adds to it.
class Registry {
 public:
  static Registry& global();
  void add(StageInfo info);
  [[nodiscard]] const StageInfo* find(const std::string& name) const;
  /// By name.
  [[nodiscard]] std::vector<const StageInfo*> all() const;
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::vector<std::unique_ptr<StageInfo>> stages_;
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
