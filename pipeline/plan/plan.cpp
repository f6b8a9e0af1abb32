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
          "name of the node whose output this node takes, or NODE.OUTPUT of one with several "
          "outputs; a list of names for merge, concat and batches, and for several sources; "
          "required except in a source");
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
          "source only: number of files that are one task until they are batched or written, each "
          "with its own entry in the report; auto: about 100 µs of a worker's time; never more "
          "than memory.host has room for")
      .range(1, kMostFilesPerTask)
      .tuning();
  s.field("on_failure", on_failure,
          "what is lost when this node, or one after it, cannot process a file; file: all its "
          "outputs; branch: only those after this node, with a warning; not set: as the nearest "
          "node before, else file");
  s.field("max_failures", max_failures,
          "number or share of files that may fail in this node, beside max_failures of the whole "
          "run; more end the run; not set: no limit");
}

Mark mark_of(const NodeSpec& node, const std::string& key) {
  if (const Value* v = key.empty() ? nullptr : node.options.find(key)) return v->mark();
  return node.mark;
}

void Plan::allow_failures() {
  max_failures = {};
  for (PlanNode& n : nodes) n.max_failures = {};
}

std::string name_of(const Plan& plan, const PlanInput& input) {
  const PlanNode& up = plan.nodes[static_cast<std::size_t>(input.node)];
  if (input.output < 0) return up.written;
  const std::string& output = up.outputs[static_cast<std::size_t>(input.output)];
  return up.inputs.empty() ? output : up.written + "." + output;
}

}  // namespace melflow
