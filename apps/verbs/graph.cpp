// melflow graph: prints the plan and its bounds as a Mermaid flowchart.
#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/report/printing.h"
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/verbs.h"

namespace melflow {
namespace {

// Nodes are numbered, because a name may be a reserved word of Mermaid ("end").
std::string mermaid(const Plan& plan) {
  std::string out = "flowchart LR\n";
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    out += fmt::format("  n{}[\"{}<br/>{} × {}\"]\n", i, n.name, n.info->name, n.concurrency);
  }
  for (std::size_t k = 0; k < plan.sources.size(); ++k)
    out += fmt::format("  s{0}[\"{1}<br/>{2}\"]\n  s{0} --> n0\n", k, plan.sources[k].name,
                       plan.sources[k].info->name);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    for (const PlanInput& in : n.inputs) {
      const std::vector<std::string>& outputs =
          plan.nodes[static_cast<std::size_t>(in.node)].outputs;
      const std::string by =
          in.output < 0 ? "" : outputs[static_cast<std::size_t>(in.output)] + ": ";
      out +=
          fmt::format("  n{} -->|\"{}{}, queue {}\"| n{}\n", in.node, by, n.port.name, n.queue, i);
    }
  }
  return out;
}

}  // namespace

Action add_graph(CLI::App& verb) {
  auto arguments = std::make_shared<PlanArguments>();
  arguments->add_to(verb);
  verb.footer(
      "A node is shown with its stage and concurrency, an edge with what crosses it and how many\n"
      "items may wait there.\n"
      "\n"
      "Example:\n"
      "  melflow graph mine.yaml > mine.mmd");
  return [arguments] {
    put(stdout, mermaid(arguments->load()));
    return kDone;
  };
}

}  // namespace melflow
