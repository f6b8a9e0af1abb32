#include "config/load.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "config/document.h"
#include "config/expectations.h"
#include "config/overrides.h"
#include "config/pipeline_tests.h"
#include "config/plugins.h"
#include "config/top_level.h"
#include "pipeline/base/secrets.h"
#include "pipeline/base/sentences.h"
#include "pipeline/base/text.h"
#include "pipeline/base/warned_config_error.h"
#include "pipeline/plan/graph_builder.h"

namespace melflow {
namespace {

constexpr std::size_t kMostNodes = 256;
constexpr std::size_t kLongestName = 100;  // of a node [bytes]

bool is_node_name(const std::string& name) {
  if (name.empty() || name.size() > kLongestName) return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
}

bool is_other_version(const Value& version) {
  return version.is_scalar() && version.text() != std::to_string(kConfigVersion);
}

class Reader {
 public:
  Reader(const LoadOptions& options, const Registry& registry)
      : options_(options), registry_(registry) {}

  Plan load(const std::string& text, const std::string& name) {
    if (&registry_ == &Registry::global()) load_plugins_of_environment();
    file_ = std::make_shared<const std::string>(name);
    Document document = read_document(text, name);
    problems_ = std::move(document.problems);
    if (document.complete && !document.root.is_map())
      error(document.root.mark(),
            "the configuration is not a map; it must have the keys 'version' and 'graph'");
    if (!document.complete || !document.root.is_map()) throw ConfigError(std::move(problems_));

    Value& root = document.root;
    take_tests(root);
    const std::set<std::string> asked = fill_in(root);
    if (options_.asked != nullptr)
      options_.asked->insert(asked.begin(), asked.end());
    else
      check_unused(options_.vars, asked, problems_);
    if (options_.filled_in != nullptr) *options_.filled_in = root;
    read_top_level(root);
    load_plugins(root);
    read_graph(root);
    Plan plan = build();
    if (options_.trust.is_stored()) keep_plugins(root, plan.settings.config);
    return plan;
  }

 private:
  void error(Mark mark, std::string message) { problems_.add(std::move(mark), std::move(message)); }

  // Checks the tests and removes them: they are not part of the run, nor are their variables.
  void take_tests(Value& root) {
    std::vector<Value::Entry>& entries = root.entries();
    const auto tests = std::find_if(entries.begin(), entries.end(),
                                    [](const Value::Entry& e) { return e.key == kTestsKey; });
    if (tests == entries.end()) return;
    read_tests(tests->value, problems_);
    entries.erase(tests);
  }

  // Applies overrides, then variables; returns the names of the variables used.
  std::set<std::string> fill_in(Value& root) {
    apply_overrides(root, options_.sets, problems_);
    Variables variables(options_.vars, options_.trust.allows(Effect::variable));
    if (options_.asked != nullptr) variables.allow_missing();
    variables.expand(root, problems_);
    return variables.asked();
  }

  void read_top_level(const Value& root) {
    TopLevelOptions top;
    Schema schema;
    top.describe(schema);
    std::vector<std::string> known = schema.names();
    known.emplace_back(kGraphKey);
    known.emplace_back(kTestsKey);
    bool has_version = false;  // under another name
    for (const Value::Entry& e : root.entries()) {
      if (e.key == kGraphKey) continue;
      if (std::find(known.begin(), known.end(), e.key) == known.end()) {
        has_unknown_key_ = true;
        has_version |= advice_on(e.key, {&schema}, e.value) == did_you_mean("version");
        error(e.key_mark,
              fmt::format("{}: there is no such key at the top level{}; the keys are {}",
                          excerpt(e.key),
                          advice_on(e.key, {&schema}, e.value, {kGraphKey, kTestsKey}),
                          fmt::join(known, ", ")));
      } else if (e.key == "version" && is_other_version(e.value))
        error(e.value.mark(),
              fmt::format("version: {0}: only version {1} is known to this program; "
                          "write version: {1}",
                          excerpt(e.value.text()), kConfigVersion));
      else
        schema.read(Value::map({e}), "", problems_);
    }
    if (root.find("version") == nullptr && !has_version)
      error(start_of(root),
            fmt::format("version: this key is missing; write 'version: {}' at the top",
                        kConfigVersion));
    spec_.memory_mark = whole_file();
    if (const Value* memory = root.find("memory")) {
      const Value* host = memory->find("host");
      spec_.memory_mark = host != nullptr ? host->mark() : memory->mark();
    }
    const MemoryOptions memory = top.memory.value_or(MemoryOptions{});
    spec_.host_memory = memory.host;
    spec_.pinned_memory = memory.pinned;
    spec_.device_memory = memory.device;
    spec_.max_failures = top.max_failures;
    expect_ = top.expect.value_or(Expectations{});
    spec_.workers = options_.workers.value_or(top.workers.value_or(0));
  }

  void load_plugins(const Value& root) {
    const Value* named = root.find(kPluginsKey);
    if (named == nullptr || &registry_ != &Registry::global()) return;
    for (const Value& one : named->is_list() ? named->items() : std::vector{*named}) {
      if (!one.is_scalar()) continue;  // reported by the schema, or null
      std::string wrong;
      const bool is_here = options_.trust.is_stored() && has_plugin(one.text());
      if (!is_here && !options_.trust.allows(Effect::plugin))
        wrong = fmt::format("{}: {}", excerpt(one.text()), Trust::refusal(Effect::plugin));
      else if (!is_here)
        wrong = load_plugin(one.text());
      if (wrong.empty()) continue;
      error(one.mark(), fmt::format("{}: {}", kPluginsKey, wrong));
      is_incomplete_ = true;
    }
  }

  void check_trust(const std::string& name, const Value& node) {
    const Value* stage = node.find("stage");
    const StageInfo* info = stage == nullptr ? nullptr : registry_.find(stage->text());
    if (info == nullptr) return;
    for (const Demand& demand : demands_of(node, *info)) {
      if (options_.trust.allows(demand.effect)) continue;
      error(demand.mark, fmt::format("{}.{}: {}: {}", name, demand.option, excerpt(demand.value),
                                     Trust::refusal(demand.effect)));
      is_incomplete_ = true;
    }
  }

  void update_stored(Value& node) const {
    const Value* stage = node.find("stage");
    const StageInfo* info =
        stage == nullptr || !stage->is_scalar() ? nullptr : registry_.find(stage->text());
    if (info != nullptr) info->configure()->schema().update_stored(node);
  }

  // A recomputed output keeps its stored configuration, whatever file its plug-ins are loaded from.
  static void keep_plugins(const Value& root, Value& config) {
    std::erase_if(config.entries(), [](const Value::Entry& e) { return e.key == kPluginsKey; });
    std::vector<Secret> secrets;
    const Value stored = stored_settings(root, secrets);
    if (const Value* plugins = stored.find(kPluginsKey)) config.set(kPluginsKey, *plugins);
  }

  void read_graph(const Value& root) {
    const Value* graph = root.find(kGraphKey);
    if (graph == nullptr && has_unknown_key_) return;  // it was reported under another name
    if (graph == nullptr || graph->is_null() || (graph->is_map() && graph->entries().empty())) {
      error(graph == nullptr ? start_of(root) : graph->mark(),
            "graph: there are no nodes in it; `melflow init FILE` writes a pipeline to start from");
      return;
    }
    if (!graph->is_map()) {
      error(graph->mark(),
            graph->is_list()
                ? "graph: nodes are not a list; write each as NAME: {stage: STAGE, from: NODE}, "
                  "without the '-'"
                : "graph: this is not a map; write each node as NAME: {stage: STAGE, from: NODE}");
      return;
    }
    if (graph->entries().size() > kMostNodes) {
      error(graph->entries()[kMostNodes].key_mark,
            fmt::format("graph: has {} nodes; at most {} are allowed", graph->entries().size(),
                        kMostNodes));
      return;
    }
    for (const Value::Entry& e : graph->entries()) {
      if (!is_node_name(e.key))
        error(e.key_mark,
              fmt::format("'{}' cannot be the name of a node; names are made of 1 to {} letters, "
                          "digits, '_' and '-'{}",
                          excerpt(e.key), kLongestName,
                          e.key.find('.') == e.key.npos
                              ? ""
                              : ", without '.': 'a.b' means the output b of the node a"));
      if (e.key.size() > kLongestName) continue;  // messages would begin with it
      Value node = e.value;
      if (!node.is_map()) {
        error(e.key_mark,
              fmt::format("{0}: a node must be a map with 'stage' and its options, which are "
                          "indented further than its name: "
                          "{0}: {{stage: STAGE, from: NODE}}",
                          e.key));
        node = Value::map({}, e.key_mark);
      } else if (node.find("use") != nullptr && node.find("stage") == nullptr) {
        error(e.key_mark, fmt::format("{}.use: a graph is in one file since melflow 0.2; write the "
                                      "nodes of that file into this graph",
                                      e.key));
        is_incomplete_ = true;
        continue;
      }
      if (options_.has_all_options) update_stored(node);
      check_trust(e.key, node);
      spec_.nodes.push_back({e.key, e.key_mark, std::move(node)});
    }
  }

  Plan build() {
    // For a graph that lacks nodes or stages, further problems would only follow from that.
    if (spec_.nodes.empty() || is_incomplete_) throw ConfigError(without_repeats());
    std::set<Place> known;
    for (const Problem& p : problems_.sorted())
      if (p.mark.column > 0) known.insert(place_of(p.mark));
    std::optional<Plan> plan;
    std::vector<Problem> warnings;
    try {
      plan = build_plan(spec_, registry_);
    } catch (const ConfigError& e) {
      // Skips the plan's problems with a value that is already reported.
      for (const Problem& p : e.problems().sorted())
        if (!known.contains(place_of(p.mark))) problems_.add(p.mark, p.message);
      warnings = warnings_beside(e);
    }
    if (plan) warnings = plan->warnings;
    if (!plan || !problems_.empty())
      throw WarnedConfigError(without_repeats(), on_other_options(std::move(warnings)));
    plan->warnings = std::move(warnings);
    plan->services.add(std::make_shared<Expectations>(expect_));
    return std::move(*plan);
  }

  // Keeps warnings about options without an error, since those have to be changed anyway.
  [[nodiscard]] std::vector<Problem> on_other_options(std::vector<Problem> warnings) const {
    const auto option = [](const Problem& p) { return p.message.substr(0, p.message.find(':')); };
    std::set<std::string> options;
    std::set<Place> places;
    for (const Problem& p : problems_.sorted()) {
      options.insert(option(p));
      if (p.mark.column > 0) places.insert(place_of(p.mark));
    }
    std::erase_if(warnings, [&](const Problem& w) {
      return options.contains(option(w)) || places.contains(place_of(w.mark));
    });
    return warnings;
  }

  // A value with several aliases has the same problem at the same position each time.
  [[nodiscard]] Problems without_repeats() const {
    Problems out;
    std::set<std::pair<Place, std::string>> seen;
    for (const Problem& p : problems_.sorted())
      if (seen.emplace(place_of(p.mark), p.message).second) out.add(p.mark, p.message);
    return out;
  }

  using Place = std::tuple<std::string, int, int>;
  // The position reported for a missing key.
  [[nodiscard]] Mark start_of(const Value& root) const {
    return root.mark().line > 0 ? root.mark() : Mark{file_, 1, 1};
  }
  static Place place_of(const Mark& m) { return {m.file ? *m.file : "", m.line, m.column}; }
  [[nodiscard]] Mark whole_file() const { return {file_, 0, 0}; }

  const LoadOptions& options_;
  const Registry& registry_;
  std::shared_ptr<const std::string> file_;
  GraphSpec spec_;
  Expectations expect_;
  Problems problems_;
  bool has_unknown_key_ = false;  // at the top level
  bool is_incomplete_ = false;    // nodes of the graph are in other files, or a plug-in is missing
};

}  // namespace

Plan load_plan_text(const std::string& text, const std::string& name, const LoadOptions& options,
                    const Registry& registry) {
  return Reader(options, registry).load(text, name);
}

Plan load_plan(const std::filesystem::path& file, const LoadOptions& options,
               const Registry& registry) {
  return load_plan_text(read_configuration(file.string()), file.string(), options, registry);
}

}  // namespace melflow
