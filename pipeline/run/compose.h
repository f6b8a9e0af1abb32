// A graph from C++: lambdas as stages, beside those that are registered.
//
//   Compose graph;
//   graph.source<Text>("texts", names, [](std::size_t i) { return read(i); })
//       .map<Text, Words>("words", "texts", [](const Text& t) { return count(t); })
//       .sink<Words>("sum", "words", [&](const Words& w) { total += w.count; });
//   const RunReport report = graph.run();
//
// A payload is a struct with `static constexpr const char* kName` and the members bytes() and
// rows(), as in stage_kinds.h. A std::exception that a lambda throws fails the item, with what() as
// the reason in the ledger; a RunError ends the run.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/options/option_list.h"
#include "pipeline/plan/graph_builder.h"
#include "pipeline/run/runner.h"
#include "pipeline/stage/join.h"

namespace melflow {

class Compose {
 public:
  /// With the stages of that registry, which are copied.
  explicit Compose(const Registry& stages = Registry::global()) {
    for (const StageInfo* info : stages.all()) registry_.add(*info);
  }

  /// A node of a registered stage, with `from` and its other options.
  Compose& node(const std::string& name, const std::string& stage, const OptionList& options) {
    Value map = map_of(options);
    map.set("stage", Value::scalar(stage));
    spec_.nodes.push_back({name, {}, std::move(map)});
    return *this;
  }

  /// The source: an item for each of the names, by which the report calls it. `make(i)` gives item
  /// number i, one call at a time, so it should be quick: a map behind it reads files. The memory
  /// budget relies on `largest`: an item of more bytes ends the run, as does an exception.
  template <class Out, class F>
  requires std::is_invocable_r_v<Out, F, std::size_t> Compose& source(
      const std::string& name, std::vector<std::string> names, F make,
      std::size_t largest = 1 << 20) {
    class Made final : public Source<Out> {
     public:
      Made(std::vector<std::string> names, F make, std::size_t largest)
          : names_(std::move(names)), make_(std::move(make)), largest_(largest) {}
      [[nodiscard]] std::size_t count() const override { return names_.size(); }
      [[nodiscard]] SourceItem item(std::size_t i) override {
        auto out = std::make_shared<const Out>(make_(i));
        const std::size_t bytes = out->bytes();
        if (bytes > largest_)
          throw RunError(
              fmt::format("{}: has {} bytes, at most {} are allowed", names_[i], bytes, largest_));
        return {std::move(out), {names_[i], bytes}};
      }
      [[nodiscard]] std::string name(std::size_t i) const override { return names_[i]; }
      [[nodiscard]] std::size_t output_bound(const SourceInfo& source, std::size_t) const override {
        return std::min(source.bytes, largest_);
      }

     private:
      std::vector<std::string> names_;
      F make_;
      std::size_t largest_;
    };
    return add<Made>(name, {}, std::move(names), std::move(make), largest);
  }

  /// One item in, one out: `change` takes `const In&` and gives an Out; many calls at a time. The
  /// memory budget relies on `growth`: an Out has at most so many times the bytes of its In; the
  /// report warns of one that has more.
  template <class In, class Out, class F>
  requires std::is_invocable_r_v<Out, const F, const In&> Compose& map(
      const std::string& name, const std::string& from, F change, double growth = 1,
      const OptionList& options = {}) {
    class Changed final : public Grows<Transform<In, Out>, F> {
     public:
      using Grows<Transform<In, Out>, F>::Grows;
      Result<std::shared_ptr<const Out>> process(std::shared_ptr<const In> in,
                                                 ItemContext&) const override {
        std::shared_ptr<const Out> out;
        if (auto error = caught([&] { out = std::make_shared<const Out>(this->call_(*in)); }))
          return std::move(*error);
        return out;
      }
    };
    return add<Changed>(name, with_from(from, options), std::move(change), growth);
  }

  /// One item in, several out: `make` takes `const In&` and gives a std::vector<Out>; if that is
  /// empty, the item is skipped; otherwise as map(). All of them together have at most `growth`
  /// times as many bytes as the In.
  template <class In, class Out, class F>
  requires std::is_invocable_r_v < std::vector<Out>,
  const F, const In& > Compose& many(const std::string& name, const std::string& from, F make,
                                     double growth = 1, const OptionList& options = {}) {
    class Several final : public Grows<OneToMany<In, Out>, F> {
     public:
      using typename OneToMany<In, Out>::Many;
      using Grows<OneToMany<In, Out>, F>::Grows;
      Result<Many> process(std::shared_ptr<const In> in, ItemContext&) const override {
        Many out;
        const auto make = [&] {
          for (Out& one : this->call_(*in))
            out.push_back(std::make_shared<const Out>(std::move(one)));
        };
        if (auto error = caught(make)) return std::move(*error);
        return out;
      }
    };
    return add<Several>(name, with_from(from, options), std::move(make), growth);
  }

  /// One item in, one out by each of the outputs NAME.first and NAME.second, whose types may
  /// differ: `make` takes `const In&` and gives a std::pair<First, Second>, or a pair of
  /// std::optional if an item does not always leave by both; otherwise as map(). Both together have
  /// at most `growth` times as many bytes as the In.
  template <class In, class First, class Second, class F>
  requires std::is_invocable_r_v < std::pair<std::optional<First>, std::optional<Second>>,
  const F, const In& > Compose& split(const std::string& name, const std::string& from, F make,
                                      double growth = 1, const OptionList& options = {}) {
    class Parted final : public Grows<Split<In, First, Second>, F> {
     public:
      using typename Split<In, First, Second>::Parts;
      using Grows<Split<In, First, Second>, F>::Grows;
      static std::vector<std::string> outputs(const NodeSpec&) { return {"first", "second"}; }
      Result<Parts> process(std::shared_ptr<const In> in, ItemContext&) const override {
        Parts out;
        const auto make = [&] {
          std::pair<std::optional<First>, std::optional<Second>> both = this->call_(*in);
          if (both.first) std::get<0>(out) = std::make_shared<const First>(std::move(*both.first));
          if (both.second)
            std::get<1>(out) = std::make_shared<const Second>(std::move(*both.second));
        };
        if (auto error = caught(make)) return std::move(*error);
        return out;
      }
    };
    return add<Parted>(name, with_from(from, options), std::move(make), growth);
  }

  /// One item of two payloads that were made of the same one, on two branches: `make` takes
  /// `const First&` of the node `first` and `const Second&` of the node `second` and gives an Out;
  /// otherwise as map(). An Out has at most `growth` times as many bytes as both together.
  template <class First, class Second, class Out, class F>
  requires std::is_invocable_r_v<Out, const F, const First&, const Second&> Compose& join(
      const std::string& name, const std::string& first, const std::string& second, F make,
      double growth = 1) {
    class Joined final : public Grows<Join<First, Second, Out>, F> {
     public:
      using Grows<Join<First, Second, Out>, F>::Grows;
      Result<std::shared_ptr<const Out>> process(std::shared_ptr<const First> a,
                                                 std::shared_ptr<const Second> b,
                                                 ItemContext&) const override {
        std::shared_ptr<const Out> out;
        if (auto error = caught([&] { out = std::make_shared<const Out>(this->call_(*a, *b)); }))
          return std::move(*error);
        return out;
      }
    };
    return add<Joined>(name, {{"from", std::vector<std::string>{first, second}}}, std::move(make),
                       growth);
  }

  /// Takes items: `take` gets `const In&`; one call at a time, in any order, as do blocks of one
  /// item.
  template <class In, class F>
  requires std::invocable<F, const In&> Compose& sink(const std::string& name,
                                                      const std::string& from, F take) {
    class Taken final : public Sink<In> {
     public:
      explicit Taken(F take) : take_(std::move(take)) {
        this->traits_.max_concurrency = 1;
        this->traits_.order = BlockOrder::any;
      }
      std::optional<ItemError> consume(std::shared_ptr<const In> in, ItemContext&) override {
        return caught([&] { take_(*in); });
      }

     private:
      F take_;
    };
    return add<Taken>(name, with_from(from, {}), std::move(take));
  }

  /// The whole graph's settings: memory, workers.
  [[nodiscard]] GraphSpec& spec() { return spec_; }

  /// Runs the graph to its end. Throws ConfigError with every problem of it, RunError when it could
  /// not start. `remarks`, unless null, gets the items that are not ok, or ok with a warning.
  RunReport run(std::vector<Remark>* remarks = nullptr) const {
    Runner runner(build_plan(spec_, registry_));
    RunReport report = runner.run();
    if (remarks != nullptr) *remarks = runner.remarks();
    return report;
  }

 private:
  // A stage made of a lambda, whose output grows by at most that factor.
  template <class Base, class F>
  class Grows : public Base {
   public:
    Grows(F call, double growth) : call_(std::move(call)), growth_(growth) {}
    [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
      return static_cast<std::size_t>(static_cast<double>(input) * growth_);
    }

   protected:
    F call_;

   private:
    double growth_;
  };

  template <class F>
  static std::optional<ItemError> caught(F&& call) {
    try {
      call();
    } catch (const RunError&) {
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& e) {
      return ItemError::failed(e.what());
    }
    return std::nullopt;
  }
  static OptionList with_from(const std::string& from, OptionList options) {
    options.emplace_back("from", from);
    return options;
  }

  // Registers the stage under the node's name; each run makes one.
  template <class S, class... Args>
  Compose& add(const std::string& name, const OptionList& options, Args... args) {
    struct Config final : StageConfig {
      explicit Config(std::function<std::unique_ptr<Stage>()> make_) : maker(std::move(make_)) {}
      [[nodiscard]] const Schema& schema() const override { return none; }
      [[nodiscard]] std::unique_ptr<Stage> make() const override { return maker(); }
      std::function<std::unique_ptr<Stage>()> maker;
      Schema none;
    };
    StageInfo info;
    info.name = name;
    info.summary = "made of a lambda";
    info.affects_features = true;
    info.traits = S(args...).traits();
    if constexpr (NamesOutputs<S>) info.outputs = S::outputs;
    info.configure = [args...] {
      return std::make_unique<Config>([args...] { return std::make_unique<S>(args...); });
    };
    registry_.add(std::move(info));
    return node(name, name, options);
  }

  Registry registry_;
  GraphSpec spec_;
};

}  // namespace melflow
