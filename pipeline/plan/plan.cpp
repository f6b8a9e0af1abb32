#include "pipeline/plan/plan.h"

#include <algorithm>
#include <utility>

namespace melflow {

std::string OptionType<CountOrShare>::parse(const Value& v, CountOrShare& out) {
  std::string bad = detail::is_not(v, "a count or a share such as 10 or 1%");
  if (v.is_null()) return out = {}, "";
  if (!v.is_scalar() || v.text().empty()) return bad;
  std::string text = v.text();
  const bool percent = text.back() == '%';
  if (percent) text.erase(text.find_last_not_of(" %") + 1);
  double number = 0;
  if (!detail::parse_number(Value::scalar(text), number).empty() || number < 0) return bad;
  out = {};
  if (percent || text.find('.') != text.npos) {
    out.share = percent ? number / 100 : number;
    if (*out.share > 1)
      return excerpt(v.text()) + " is more than all files; allowed: 0% to 100%, or a count";
  } else {
    out.count = static_cast<std::size_t>(number);
  }
  return {};
}

Value OptionType<CountOrShare>::echo(const CountOrShare& v) {
  if (v.count) return Value::scalar(std::to_string(*v.count));
  if (v.share) return Value::scalar(number_text(*v.share * 100) + "%", {}, true);
  return {};
}

namespace {
constexpr OtherName kOtherNames[] = {
    {"type", "", "stage"},
    {"kind", "", "stage"},
    {"input", "", "from"},
    {"inputs", "", "from"},
    {"source", "", "from"},
    {"num_workers", "PyTorch", "concurrency"},
    {"n_jobs", "scikit-learn", "concurrency"},
    {"threads", "", "concurrency"},
    {"prefetch", "TensorFlow", "queue"},
};
constexpr const char* kAllWorkers = "write auto for as many as there are workers";
constexpr OtherValue kOtherValues[] = {
    {"concurrency", "max", kAllWorkers},
    {"concurrency", "all", kAllWorkers},
    {"concurrency", "-1", kAllWorkers},
};
}  // namespace

void NodeOptions::describe(Schema& s) {
  s.other_names(kOtherNames);
  s.other_values(kOtherValues);
  s.field("stage", stage,
          "name of the stage that the node runs; required; `melflow stages` lists all stages");
  s.field("from", from,
          "name of the node whose output this node takes, or NODE.OUTPUT where that node has "
          "several outputs; merge, concat and batches take a list of names, and so does a node "
          "that takes the files of several sources; required except in a source");
  s.field("concurrency", concurrency,
          "largest number of items that the node processes at the same time; auto: the number of "
          "workers, unless the stage says otherwise (disk_read: its option depth with engine: "
          "threads or io_uring; the group h2d of mel)")
      .range(1, 1024)
      .tuning();
  s.field("queue", queue,
          "largest number of items that may wait before this node; auto: twice the node's "
          "concurrency, or the concurrency of the node before where that is more")
      .range(1, kMostPlaces)
      .tuning();
  s.field("start_at", start_at,
          "fraction of the queue that must be filled before the node takes its first item, unless "
          "no more items can come; 0: the node starts at once")
      .range(0, 1)
      .tuning();
  s.field("files_per_task", files_per_task,
          "source only: number of files handled together as one task until they are collected in a "
          "batch or written, each with its own entry in the report; auto: as many as take about "
          "100 µs of a worker's time, fewer towards the end of the list; never more than "
          "memory.host has room for")
      .range(1, kMostFilesPerTask)
      .tuning();
  s.field("on_failure", on_failure,
          "what is lost when this node, or one after it, cannot process a file; file: all outputs "
          "of the file; branch: only those after this node, while the others keep it, with a "
          "warning; not set: as set by the nearest node before, or file if none sets it");
  s.field("max_failures", max_failures,
          "number or share of files that may fail in this node, beside max_failures of the whole "
          "run; more end the run; not set: no limit");
}

void Plan::allow_failures() {
  max_failures = {};
  for (PlanNode& n : nodes) n.max_failures = {};
}

namespace {

// Adds up the outputs of the nodes from `first` on; `bounds` has those of the nodes before. Parts
// are counted separately.
std::size_t sum_of_bounds(const Plan& plan, std::size_t first, bool of_parts,
                          const SourceInfo& source, std::vector<std::size_t>& bounds) {
  std::size_t total = 0;
  for (std::size_t i = first; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    bounds[i] = kNoBound;
    if (n.info->traits.kind == StageKind::sink || n.takes_parts != of_parts) continue;
    const std::size_t in = n.inputs.empty() ? source.bytes : bytes_in(n, bounds);
    bounds[i] = n.stage->output_bound(source, in);
    if (n.info->traits.cuts)
      total += n.resources.keeps_of_stream;
    else if (!n.inputs.empty() && !n.resources.passes_on)
      total += bounds[i];
  }
  return total;
}

// Reused because it is needed for every file.
std::vector<std::size_t>& work_space(const Plan& plan) {
  thread_local std::vector<std::size_t> bounds;
  bounds.resize(plan.nodes.size());
  return bounds;
}

}  // namespace

std::string name_of(const Plan& plan, const PlanInput& input) {
  const PlanNode& up = plan.nodes[static_cast<std::size_t>(input.node)];
  if (input.output < 0) return up.written;
  const std::string& output = up.outputs[static_cast<std::size_t>(input.output)];
  return up.inputs.empty() ? output : up.written + "." + output;
}

std::size_t bytes_in(const PlanNode& node, const std::vector<std::size_t>& bounds) {
  std::size_t out = 0;
  for (const PlanInput& from : node.inputs) {
    const std::size_t bytes = bounds[static_cast<std::size_t>(from.node)];
    out = node.info->traits.pairs ? out + bytes : std::max(out, bytes);
  }
  return out;
}

std::size_t admission_cost(const Plan& plan, const SourceInfo& source,
                           std::vector<std::size_t>* bounds) {
  std::vector<std::size_t>& found = work_space(plan);
  const std::size_t cost = sum_of_bounds(plan, 0, false, source, found);
  if (bounds == nullptr) return cost;
  *bounds = found;
  // A payload may hold only some bytes of a file, while the report counts all of them.
  for (std::size_t& bound : *bounds) bound = std::max(bound, source.bytes);
  return cost;
}

std::size_t part_cost(const Plan& plan, std::size_t node, std::size_t bytes) {
  std::vector<std::size_t>& bounds = work_space(plan);
  bounds[node] = bytes;
  return bytes + sum_of_bounds(plan, node + 1, true, {"", bytes}, bounds);
}

}  // namespace melflow
