#include "apps/testing/test_run.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/testing/test_checks.h"
#include "pipeline/base/text.h"
#include "pipeline/run/runner.h"
#include "stages/output/row_sink.h"

namespace melflow {
namespace fs = std::filesystem;
namespace {

constexpr const char* kSynthetic = "synthetic";

bool has_option(const PlanNode& node, const std::string& name) {
  const std::vector<std::string> names = node.config->schema().names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::span<const PlanNode> sources_of(const Plan& plan) {
  return plan.sources.empty() ? std::span(plan.nodes).first(1) : std::span(plan.sources);
}

// Returns the name of an output in its folder; "" where the folder itself is the output.
fs::path name_of(const PlanNode& sink) {
  if (sink.info->name == "npy_write") return "rows.npy";
  if (dynamic_cast<const RowSink*>(sink.stage.get()) != nullptr) return "rows.h5";
  const Value* written = sink.options.find("path");
  const fs::path name = written == nullptr ? "" : fs::path(written->text()).filename();
  return name.has_extension() ? name : "";
}

// Returns the source stage that a test asks for; "": the pipeline's own.
std::string stage_of(const PipelineTest& test) {
  const Value* stage = test.input.value.find("stage");
  return stage == nullptr ? "" : stage->text();
}

// Writes recordings of the stage synthetic as WAV files below `folder`: those of each kind in a
// folder of that name.
void make_recordings(const PipelineTest& test, const fs::path& folder) {
  Value files = Value::map({});
  files.set("stage", Value::scalar("audio_write"));
  files.set("from", Value::scalar("made"));
  files.set("path", Value::scalar(folder.string(), {}, true));
  Value graph = Value::map({});
  graph.set("made", test.input.value);
  graph.set("files", std::move(files));
  Value root = Value::map({});
  root.set("version", Value::scalar("1"));
  root.set("graph", std::move(graph));
  const std::string name = fmt::format("the input of the test '{}'", excerpt(test.name));
  Runner runner(load_plan_text(to_json(root), name));
  const RunReport report = runner.run();
  if (report.ending == Ending::failed) throw RunError(name + ": " + report.error);
}

class OneTest {
 public:
  OneTest(const PipelineTest& test, const TestOptions& options, fs::path scratch)
      : test_(test),
        options_(options),
        scratch_(std::move(scratch)),
        folder_(fs::path(options.pipeline).parent_path()) {
    load_.vars = options.vars;
    load_.vars.insert(load_.vars.end(), test.vars.begin(), test.vars.end());
    load_.sets = options.sets;
    load_.workers = options.workers;
    load_.asked = &asked_;
    add_sets(test.sets);
  }

  std::vector<std::string> run() {
    const Plan first = load_plan(options_.pipeline, load_);
    check_nodes(first);
    for (const PlanNode& source : sources_of(first)) set_input(source);
    add_sets(test_.sets);  // the test's own settings of the input take precedence
    set_outputs(first);
    Runner runner(load_plan(options_.pipeline, load_));
    TestedRun run;
    run.report = runner.run();
    run.remarks = runner.remarks();
    run.outputs = outputs_;
    return check_test(*test_.expect, run, folder_);
  }

 private:
  void add_sets(const std::vector<Assignment>& sets) {
    load_.sets.insert(load_.sets.end(), sets.begin(), sets.end());
  }
  void set(const PlanNode& node, const std::string& option, const std::string& value) {
    load_.sets.push_back({fmt::format("{}.{}", node.written, option), value});
  }

  // Refuses names of outputs that no node of the pipeline has.
  void check_nodes(const Plan& plan) const {
    std::vector<std::string> sinks;
    for (const PlanNode& node : plan.nodes)
      if (node.info->traits.kind == StageKind::sink) sinks.push_back(node.written);
    for (const ExpectedOutput& output : test_.expect->outputs)
      if (std::find(sinks.begin(), sinks.end(), output.node) == sinks.end())
        throw ConfigError(fmt::format("tests.{}.expect.outputs.{}: the pipeline has no such "
                                      "output; it has {}{}",
                                      excerpt(test_.name), excerpt(output.node),
                                      fmt::join(sinks, ", "), did_you_mean(output.node, sinks)),
                          test_.mark);
  }

  void set_input(const PlanNode& source) {
    const std::string asked_for = stage_of(test_), there = source.info->name;
    if (has_option(source, "feed")) set(source, "feed", "stream");
    if (!asked_for.empty() && asked_for != there) {
      if (asked_for != kSynthetic || !has_option(source, "root"))
        throw ConfigError(fmt::format("tests.{}.input.stage: a pipeline that begins with {} can "
                                      "have input of {}{}",
                                      excerpt(test_.name), there, there,
                                      has_option(source, "root") ? " or synthetic" : ""),
                          test_.mark);
      const fs::path made = scratch_ / "input";
      if (!fs::exists(made)) make_recordings(test_, made);  // several sources share the recordings
      if (has_option(source, "manifest")) set(source, "manifest", "\"\"");
      return set(source, "root", to_json(Value::scalar(made.string(), {}, true)));
    }
    for (const Value::Entry& e : test_.input.value.entries()) {
      if (e.key == "stage") continue;
      Value value = e.value;
      const auto placed = [&](const Value& path) {
        return Value::scalar((folder_ / path.text()).string(), {}, true);
      };
      const bool is_path = e.key == "root" || e.key == "manifest";
      if (is_path && value.is_scalar()) value = placed(value);
      if (is_path && value.is_map())  // a manifest for each split
        for (const Value::Entry& split : e.value.entries())
          if (split.value.is_scalar()) value.set(split.key, placed(split.value));
      set(source, e.key, value.is_scalar() && !value.quoted() ? value.text() : to_json(value));
    }
  }

  // Redirects all outputs into the test's folder, whatever paths the pipeline or the test set.
  void set_outputs(const Plan& plan) {
    for (const PlanNode& node : sources_of(plan)) {
      const Value options = node.config->schema().echo();
      const Value* cache = options.find("cache_path");
      if (cache != nullptr && !cache->text().empty())
        set(node, "cache_path",
            to_json(Value::scalar((scratch_ / (node.written + ".cache")).string(), {}, true)));
    }
    for (const PlanNode& node : plan.nodes) {
      if (node.info->traits.kind != StageKind::sink) continue;
      const fs::path folder = scratch_ / node.written;
      fs::create_directories(folder);
      if (has_option(node, "path"))
        set(node, "path", to_json(Value::scalar((folder / name_of(node)).string(), {}, true)));
      outputs_.emplace_back(node.written, folder);
    }
  }

  const PipelineTest& test_;
  const TestOptions& options_;
  fs::path scratch_, folder_;
  std::set<std::string> asked_;
  LoadOptions load_;
  std::vector<std::pair<std::string, fs::path>> outputs_;
};

}  // namespace

std::vector<std::string> run_test(const PipelineTest& test, const TestOptions& options,
                                  const fs::path& scratch) {
  return OneTest(test, options, scratch).run();
}

}  // namespace melflow
