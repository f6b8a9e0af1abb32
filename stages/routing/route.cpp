// route: sends a file to the first of several named outputs whose conditions it meets.
// filter: sends a file to its only output, or to none.
//
// In, out: file, bytes or waveform, passed on unchanged. A file's first block decides where all of
// its blocks go. Only a filter by the peak, or by what was measured, may exclude a file later: its
// rows are then undone.

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/other_names.h"
#include "stages/routing/conditions.h"

namespace melflow {

struct Routes {
  struct Output {
    std::string name;
    Conditions conditions;
  };
  std::vector<Output> list;
};
template <>
struct OptionType<Routes> {
  static std::string name() { return "outputs ({long: {duration: \"> 15s\"}})"; }
  static std::string parse(const Value& v, Routes& out) {
    if (!v.is_map())
      return detail::is_not(v, "a map of outputs such as {long: {duration: \"> 15s\"}}");
    if (v.entries().empty())
      return "has no output; write some, such as {long: {duration: \"> 15s\"}}";
    Routes read;
    for (const Value::Entry& e : v.entries()) {
      Routes::Output output{e.key, {}};
      if (e.key.find('.') != e.key.npos)
        return excerpt(e.key) + ": an output has no '.' in its name";
      if (std::string why = Conditions::parse(e.value, output.conditions); !why.empty())
        return excerpt(e.key) + ": " + why;
      read.list.push_back(std::move(output));
    }
    out = std::move(read);
    return {};
  }
  static Value echo(const Routes& v) {
    Value out = Value::map({});
    for (const auto& [name, conditions] : v.list) out.set(name, conditions.written());
    return out;
  }
};

namespace {

const PortType kAnyPort{typeid(RoutingFacts), "file, bytes or waveform"};

// The output that a file's first block took.
struct Way final : StageState {
  int output = -1;
  std::optional<RoutingFacts> facts;  // where later blocks may exclude the file
};

class Router : public ItemStage, public PassesAny {
 public:
  void set_port(PortType port) final { port_ = port; }
  [[nodiscard]] StageResources resources() const final { return {.passes_on = true}; }

  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&, ItemContext& context) final {
    const int output = way_of(item, context);
    if (output < 0) return Emission{};
    Emission out{item.payload, item.bytes, item.rows};
    if (has_names_) out.output = output;
    return out;
  }

 protected:
  explicit Router(bool has_names)
      : ItemStage({.kind = StageKind::transform,
                   .in = kAnyPort,
                   .out = kAnyPort,
                   .takes_sub_items = false}),
        has_names_(has_names) {}

  /// The number of the output, or -1 for none; `why`: the reason, for sinks without the file.
  [[nodiscard]] virtual int decide(const RoutingFacts& facts, std::string& why) const = 0;

  void check_port(const Conditions& conditions, const std::string& option, const Properties& given,
                  PlanCheck& check) {
    needs_peak_ = needs_peak_ || conditions.needs_peak();
    needs_end_ = needs_end_ || needs_peak_ || !conditions.needs_measure().empty();
    const std::string name = conditions.needs_samples();
    if (!name.empty() && !(port_ == RoutingFacts::ports().back()))
      check.error(
          option,
          fmt::format(
              "{} is known once a file is decoded, but this node takes its {}; put it after decode",
              name, port_.name));
    else if (const std::string why =
                 conditions.not_measured(given.get_or(property::kMeasures, MeasureSet()));
             !why.empty())
      check.error(option, why);
    const std::string of_utterance = conditions.needs_utterances();
    if (name.empty() && !of_utterance.empty() && given.get_or(property::kHasUtterances, false))
      check.error(option, fmt::format("{} is that of an utterance, but this node takes whole "
                                      "recordings; put it after the last node that gives samples "
                                      "(decode, resample, ...), where utterances are cut",
                                      of_utterance));
    if (const auto fields = given.get_or(property::kManifestFields, nullptr))
      if (const std::string lacks = conditions.not_in(*fields); !lacks.empty())
        check.error(option, lacks);
  }

  static void tell(const Conditions& conditions, const std::string& option, PlanCheck& check) {
    if (const std::string remark = conditions.remark(); !remark.empty())
      check.warning(option, remark);
  }

 private:
  int way_of(const Item& item, ItemContext& context) const {
    const Origin& origin = context.origin();
    std::string why;
    if (!origin.first) {
      auto& state = context.state();
      Way& way = static_cast<Way&>(*state);
      if (way.facts) {
        way.facts->note(item);
        if (needs_peak_) way.facts->note_peak(item);
        way.output = decide(*way.facts, why);
        if (way.output < 0) context.route(-1, ItemError::skipped(std::move(why)));
      }
      const int output = way.output;
      if (origin.last) state.reset();
      return output;
    }
    RoutingFacts facts(item, port_, context);
    if (needs_peak_) facts.note_peak(item);
    const int output = decide(facts, why);
    if (has_names_ || output < 0) context.route(output, ItemError::skipped(std::move(why)));
    if (!origin.last) {
      auto way = std::make_unique<Way>();
      way->output = output;
      if (needs_end_ && !has_names_ && output >= 0) way->facts = std::move(facts);
      context.state() = std::move(way);
    }
    return output;
  }

  const bool has_names_;
  bool needs_peak_ = false, needs_end_ = false;
  PortType port_;
};

struct RouteOptions {
  Routes outputs;
  std::string otherwise;

  void describe(Schema& s) {
    s.field("outputs", outputs,
            "names of the outputs, each with the conditions that a file has to meet to leave by "
            "it, as of filter.where; the first one that it meets takes it; a node takes what "
            "leaves there by `from: NODE.OUTPUT`");
    s.field("else", otherwise,
            "name of a further output, for files that meet the conditions of no other; not set: "
            "these files are excluded and listed as skipped");
  }
};

class Route final : public Router {
 public:
  explicit Route(RouteOptions options) : Router(true), options_(std::move(options)) {}

  static std::vector<PortType> ports() { return RoutingFacts::ports(); }
  static std::vector<std::string> outputs(const NodeSpec& spec) {
    std::vector<std::string> out;
    if (const Value* named = spec.options.find("outputs"))
      for (const Value::Entry& e : named->entries()) out.push_back(e.key);
    if (const Value* otherwise = spec.options.find("else"))
      if (otherwise->is_scalar() && !otherwise->text().empty() &&
          std::find(out.begin(), out.end(), otherwise->text()) == out.end())
        out.push_back(otherwise->text());
    return out;
  }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    if (options_.outputs.list.empty())
      check.error("outputs",
                  "'outputs' is missing; write the outputs with their conditions, such as outputs: "
                  "{long: {duration: \"> 15s\"}}");
    std::set<std::string> names{options_.otherwise};
    for (const Routes::Output& o : options_.outputs.list) {
      check_port(o.conditions, "outputs", given, check);
      if (const std::string name = o.conditions.needs_measure(); !name.empty())
        check.error("outputs",
                    fmt::format("{} is known at the end of a recording only, when its samples have "
                                "left; give each output a filter of its own in place of this node: "
                                "{{stage: filter, where: {{{}: ...}}}}",
                                name, name));
      tell(o.conditions, "outputs", check);
      if (!names.insert(o.name).second)
        check.error("else", fmt::format("'{}' is already the name of an output; choose another",
                                        excerpt(o.name)));
    }
    const bool is_by_content =
        std::all_of(options_.outputs.list.begin(), options_.outputs.list.end(),
                    [](const Routes::Output& o) { return o.conditions.are_of_content(); });
    Properties out = given;
    out.set(property::kIsRoutedByContent,
            is_by_content && given.get_or(property::kIsRoutedByContent, true));
    return out;
  }

 private:
  [[nodiscard]] int decide(const RoutingFacts& facts, std::string& why) const override {
    const std::vector<Routes::Output>& list = options_.outputs.list;
    for (std::size_t i = 0; i < list.size(); ++i) {
      why = list[i].conditions.failing(facts, kUndecided);
      if (!why.empty()) continue;
      why = kSentElsewhere + list[i].name + "'";
      return static_cast<int>(i);
    }
    if (options_.otherwise.empty()) {
      if (list.size() == 1) return -1;
      why = "leaves by no output";
      for (const Routes::Output& o : list)
        why += fmt::format("{}{}: {}", &o == &list.front() ? ": " : "; ", o.name,
                           o.conditions.failing(facts, kUndecided));
      return -1;
    }
    why = kSentElsewhere + options_.otherwise + "'";
    return static_cast<int>(list.size());
  }

  // A file leaves by one output, which its first block decides.
  static constexpr auto kUndecided = Conditions::Undecided::fails;

  RouteOptions options_;
};

struct FilterOptions {
  Conditions where;

  void describe(Schema& s) {
    s.other_names(other_names::of_filter());
    s.field("where", where,
            "conditions that a file has to meet, all of them, such as {duration: 1s..15s, label: "
            "[dog, cat], path: \"*/noisy/*\"}; other files are listed as skipped. "
            "docs/pipelines.md (Branches) has all conditions");
  }
};

class Filter final : public Router {
 public:
  explicit Filter(FilterOptions options) : Router(false), options_(std::move(options)) {}

  static std::vector<PortType> ports() { return RoutingFacts::ports(); }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    if (options_.where.is_empty())
      check.error("where",
                  "has no conditions; write those that files must meet, such as where: {duration: "
                  "\"> 15s\", label: dog}");
    check_port(options_.where, "where", given, check);
    tell(options_.where, "where", check);
    return given;
  }

 private:
  [[nodiscard]] int decide(const RoutingFacts& facts, std::string& why) const override {
    why = options_.where.failing(facts, Conditions::Undecided::holds);
    return why.empty() ? 0 : -1;
  }

  FilterOptions options_;
};

const RegisterStage<Route, RouteOptions> route{
    "route", "Sends each file to one of several outputs, depending on its properties.", true};
const RegisterStage<Filter, FilterOptions> filter{
    "filter", "Passes on files that meet conditions, and excludes the others.", true};

}  // namespace
}  // namespace melflow
