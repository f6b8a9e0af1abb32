#include "pipeline/plan/plan_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "pipeline/base/sentences.h"
#include "pipeline/stage/paired_inputs.h"

namespace melflow {
namespace {

// Merges `more`, the requirements of the node `to`, into those of the branches after `node`.
// Reports contradictions.
void merge_required(Plan& plan, const PlanNode& node, int to, const Requirements& more,
                    Requirements& below) {
  for (const Requirements::Conflict& c : below.merge(more))
    check_of(plan, node)
        .error("",
               fmt::format("the branches after it want different values of {}: {} (from '{}' "
                           "on) and {}; each needs a stage of its own that makes it so",
                           c.name, c.other, plan.nodes[static_cast<std::size_t>(to)].name, c.mine));
}

// Calls require() and plan() of the sources, if there are several, and of the node that unites
// them. `required`: the requirements of all nodes but the first. Returns the first node's
// properties.
Properties plan_sources(Plan& plan, const std::vector<Requirements>& required) {
  PlanNode& united = plan.nodes.front();
  Requirements of_all;
  for (std::size_t k = 0; k < plan.sources.size(); ++k) {
    PlanNode& source = plan.sources[k];
    Requirements below;
    for (const int to : united.to) {
      const std::vector<PlanInput>& inputs = plan.nodes[static_cast<std::size_t>(to)].inputs;
      const Requirements& more = required[static_cast<std::size_t>(to)];
      if (std::any_of(inputs.begin(), inputs.end(), [k](const PlanInput& in) {
            return in.node == 0 && in.output == static_cast<int>(k);
          }))
        merge_required(plan, source, to, more, below);
    }
    static_cast<void>(source.stage->require(below));
    PlanCheck check = check_of(plan, source);
    static_cast<void>(source.stage->plan({}, below, check));
    // Branches of different sources may have different requirements.
    static_cast<void>(of_all.merge(below));
  }
  PlanCheck check = check_of(plan, plan.sources.front());
  return united.stage->plan({}, united.stage->require(of_all), check);
}

// Returns the requirements of each node, except for a node that unites several sources.
std::vector<Requirements> requirements_of(Plan& plan) {
  std::vector<Requirements> all(plan.nodes.size());
  for (std::size_t i = plan.nodes.size(); i-- > (plan.sources.empty() ? 0U : 1U);) {
    const PlanNode& n = plan.nodes[i];
    Requirements below;
    for (int to : n.to) merge_required(plan, n, to, all[static_cast<std::size_t>(to)], below);
    all[i] = n.stage->require(below);
  }
  return all;
}

}  // namespace

PlanCheck check_of(Plan& plan, const PlanNode& node) {
  const auto text = [&node](const std::string& option, const std::string& message) {
    std::string place = node.name;
    if (!option.empty()) place.append(".").append(option);
    return place.append(": ").append(message);
  };
  return {[&plan, &node, text](const std::string& option, const std::string& message) {
            plan.error(mark_of(node, option), text(option, message));
          },
          [&plan, &node, text](const std::string& option, const std::string& message) {
            plan.warnings.push_back({mark_of(node, option), text(option, message)});
          },
          [&plan, &node, text](const std::string& option, const std::string& message) {
            plan.notes.push_back({mark_of(node, option), text(option, message)});
          }};
}

void check_stages(Plan& plan) {
  const std::vector<Requirements> required = requirements_of(plan);
  std::vector<Properties> properties(plan.nodes.size());
  if (!plan.sources.empty()) properties[0] = plan_sources(plan, required);
  for (std::size_t i = plan.sources.empty() ? 0 : 1; i < plan.nodes.size(); ++i) {
    PlanNode& n = plan.nodes[i];
    PlanCheck check = check_of(plan, n);
    Requirements below;
    for (int to : n.to) (void)below.merge(required[static_cast<std::size_t>(to)]);
    Properties given;
    if (!n.inputs.empty()) given = properties[static_cast<std::size_t>(n.from())];
    for (const PlanInput& in : n.inputs)
      given.keep_equal(properties[static_cast<std::size_t>(in.node)]);
    if (PairedInputs* paired = n.faces.paired; paired != nullptr) {
      std::vector<PairedInputs::Input> inputs;
      for (const PlanInput& in : n.inputs)
        inputs.push_back({plan.nodes[static_cast<std::size_t>(in.node)].written,
                          properties[static_cast<std::size_t>(in.node)]});
      paired->set_inputs(std::move(inputs));
    }
    properties[i] = n.stage->plan(given, below, check);
  }
}

// The order of the blocks of a file in a node's output.
struct Blocks {
  bool are_several = false;
  const PlanNode* mixed_by = nullptr;  // the node that may reorder them, if any
};

void check_order(Plan& plan) {
  std::vector<Blocks> given(plan.nodes.size());
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    const StageTraits& traits = n.stage->traits();
    Blocks& own = given[i];
    for (const PlanInput& in : n.inputs) {
      const Blocks& up = given[static_cast<std::size_t>(in.node)];
      own.are_several |= up.are_several;
      if (own.mixed_by == nullptr) own.mixed_by = up.mixed_by;
    }
    if (own.mixed_by != nullptr && traits.order == BlockOrder::needed)
      check_of(plan, n).error(
          "from", fmt::format("{} takes the blocks of a file in order, but {} ({}) before it lets "
                              "them overtake each other; put {} before {}",
                              n.stage_name, own.mixed_by->name, own.mixed_by->stage_name, n.name,
                              own.mixed_by->name));
    if (own.are_several && own.mixed_by == nullptr && traits.order == BlockOrder::any)
      own.mixed_by = &n;
    own.are_several |= traits.expands || traits.cuts;
  }
}

// Nodes that are inserted where one is missing have the name of their stage.
bool is_put_in_by_itself(const PlanNode& n) { return n.info->is_put_in && n.name == n.stage_name; }

// How a node can get whole recordings. `divider`: what makes items of them; `maker`: the first node
// from there on that yields what the node takes.
std::string whole_items(const Plan& plan, const PlanNode& n, const PlanNode& divider,
                        const PlanNode& maker) {
  if (n.is_inserted) return "remove the option of the source that puts it there";
  if (divider.port == n.port) return fmt::format("put {} before {}", n.name, divider.written);
  const PlanNode* before = &plan.nodes[static_cast<std::size_t>(divider.from())];
  while (is_put_in_by_itself(*before) && before->from() >= 0)
    before = &plan.nodes[static_cast<std::size_t>(before->from())];
  return fmt::format(
      "write another {1} node, {{stage: {1}, from: {2}}}{3}, and name that in {0}.from", n.name,
      maker.stage_name, before->written,
      maker.written == divider.written ? ", without the option that does so" : "");
}

void check_sub_items(Plan& plan) {
  for (const PlanNode& n : plan.nodes) {
    if (!n.stage->gets_sub_items() || n.stage->traits().takes_sub_items) continue;
    const PlanNode *divider = &n, *maker = &n;
    while (!divider->info->traits.divides)
      for (const PlanInput& in : divider->inputs)
        if (const PlanNode& up = plan.nodes[static_cast<std::size_t>(in.node)];
            up.info->traits.divides || up.stage->gets_sub_items()) {
          if (divider->port == n.port) maker = &up;
          divider = &up;
          break;
        }
    const auto written =
        std::find_if(plan.nodes.begin(), plan.nodes.end(),
                     [&](const PlanNode& other) { return other.name == divider->written; });
    check_of(plan, n).error(
        n.is_inserted ? "" : "from",
        fmt::format(
            "{} takes whole recordings, but {} ({}) before it makes several items of each; {}",
            n.stage_name, divider->written,
            (written == plan.nodes.end() ? *divider : *written).stage_name,
            whole_items(plan, n, *divider, *maker)));
  }
}

// Two nodes that make the same file would overwrite it.
void check_files(Plan& plan) {
  std::map<std::string, const PlanNode*> makers;
  for (const PlanNode& n : plan.nodes) {
    for (const std::string& path : n.resources.files_made) {
      if (path.empty()) continue;
      const auto [it, is_first] =
          makers.try_emplace(std::filesystem::absolute(path).lexically_normal().string(), &n);
      if (is_first) continue;
      check_of(plan, n).error(
          "path", fmt::format("{} is also written by {} ({}); give it another path", path,
                              it->second->name, it->second->stage_name));
      break;
    }
  }
}

// Skips sinks, which write different files. Nodes that differ in tuning options or in on_failure
// may be intended, so they are not reported.
void check_repeated_work(Plan& plan) {
  std::map<std::string, const PlanNode*> workers;
  for (const PlanNode& n : plan.nodes) {
    if (n.inputs.empty() || n.to.empty() || n.is_inserted || n.written != n.name) continue;
    std::string work = n.info->name + (n.fails_branch ? " alone" : "");
    for (const PlanInput& in : n.inputs) work += fmt::format(" {}.{}", in.node, in.output);
    const auto [it, is_first] =
        workers.try_emplace(work + to_json(n.config->schema().echo(false)), &n);
    if (is_first) continue;
    plan.warnings.push_back(
        {n.mark,
         fmt::format("{}: does again what {} (line {}) does with the same input; what "
                     "takes {} can take {}",
                     n.name, it->second->name, it->second->mark.line, n.name, it->second->name)});
  }
}

}  // namespace melflow
