#include "pipeline/graph_builder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/cpu.h"

namespace melflow {

std::string OptionType<FailureLimit>::parse(const Value& v, FailureLimit& out) {
  const std::string bad = detail::describe_value(v) +
                          " found where a count or a share of the files is expected, such as 10 or "
                          "1%";
  if (v.is_null()) return out = {}, "";
  if (!v.is_scalar() || v.text().empty()) return bad;
  std::string text = v.text();
  const bool percent = text.back() == '%';
  if (percent) text.pop_back();
  double number = 0;
  if (!detail::parse_number(Value::scalar(text), number).empty() || number < 0) return bad;
  out = {};
  if (percent || text.find('.') != text.npos) {
    out.share = percent ? number / 100 : number;
    if (*out.share > 1) return v.text() + " is more than all files";
  } else {
    out.count = static_cast<std::size_t>(number);
  }
  return {};
}

Value OptionType<FailureLimit>::echo(const FailureLimit& v) {
  if (v.count) return Value::scalar(std::to_string(*v.count));
  if (v.share) return Value::scalar(number_text(*v.share * 100) + "%", {}, true);
  return {};
}

namespace {
constexpr int kMostPlaces = 1 << 20;
// An auto queue gets no deeper than this many times the places it begins with.
constexpr int kMostGrowth = 8;
}  // namespace

void NodeOptions::describe(Schema& s) {
  s.field("stage", stage, "the kind of stage; `melflow stages` lists them");
  s.field("from", from, "the node whose output this one takes");
  s.field("concurrency", concurrency,
          "items processed at the same time; auto: as many as there are workers, or what the stage "
          "says")
      .range(1, 1024)
      .tuning();
  s.field("queue", queue,
          "items that may wait before this node; auto: as many as the run turns out to need, at "
          "first twice the concurrency and a place for each that the node before can have under way, "
          "at most eight times that")
      .range(1, kMostPlaces)
      .tuning();
  s.field("start_at", start_at,
          "the node takes its first item when this share of its queue is filled (of an auto queue: "
          "of the places it begins with), or when no more can come; 0: at once")
      .range(0, 1)
      .tuning();
}

const PlanNode* Plan::find(const std::string& name) const {
  for (const PlanNode& n : nodes)
    if (n.name == name) return &n;
  return nullptr;
}

namespace {

// Stands for "however long it is" when the needs of a block are added up: 64 TiB, so that sums and
// products of it do not overflow.
constexpr std::size_t kLargestFile = std::size_t{1} << 46;

struct Draft {
  const NodeSpec* spec = nullptr;
  std::size_t written = 0;  // the node of the description that it comes from
  NodeOptions common;
  const StageInfo* info = nullptr;
  std::unique_ptr<StageConfig> config;
  std::vector<int> from;  // indices of drafts
  std::optional<PortType> behind;  // of an inserted node: the port that it goes behind
};

Mark mark_of(const NodeSpec& spec, const std::string& key) {
  if (const Value* v = key.empty() ? nullptr : spec.options.find(key)) return v->mark();
  return spec.mark;
}

class Builder {
 public:
  Builder(const GraphSpec& spec, const Registry& registry) : spec_(spec), registry_(registry) {}

  Plan build() {
    for (const NodeSpec& n : spec_.nodes) expand(n);
    for (const Expanded& e : expanded_) read_node(e);
    for (std::size_t i = 0; i < drafts_.size(); ++i) connect(i);
    for (std::size_t i = 0; i < drafts_.size(); ++i)
      if (drafts_[i].behind && problems_.empty()) insert(i);
    check_shape();
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
    Plan plan = make();
    plan.warnings = unused_.sorted();
    check_stages(plan);
    check_files(plan);
    check_memory(plan);
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
    record_settings(plan);
    return plan;
  }

 private:
  void error(Mark mark, std::string message) { problems_.add(std::move(mark), std::move(message)); }

  struct Expanded {
    NodeSpec spec;
    std::size_t written = 0;
    std::optional<PortType> behind = std::nullopt;  // of an inserted node
  };

  // The nodes that a written one really is.
  void expand(const NodeSpec& spec) {
    const Value* stage = spec.options.find("stage");
    const StageInfo* info =
        stage != nullptr && stage->is_scalar() ? registry_.find(stage->text()) : nullptr;
    std::vector<NodeSpec> chain{spec};
    if (info != nullptr && info->expand) chain = info->expand(spec);
    outlets_.push_back(chain.back().name);
    for (NodeSpec& n : chain) expanded_.push_back({std::move(n), outlets_.size() - 1});
    if (info == nullptr || !info->insert) return;
    for (Insertion& inserted : info->insert(spec))
      expanded_.push_back({std::move(inserted.node), outlets_.size() - 1, inserted.port});
  }

  void read_node(const Expanded& expanded) {
    const NodeSpec& spec = expanded.spec;
    Draft d;
    d.spec = &spec;
    d.written = expanded.written;
    d.behind = expanded.behind;
    Schema common;
    d.common.describe(common);
    Value own = Value::map({}, spec.options.mark());
    Value shared = Value::map({}, spec.options.mark());
    for (const Value::Entry& e : spec.options.entries()) {
      const auto names = common.names();
      const bool is_common = std::find(names.begin(), names.end(), e.key) != names.end();
      (is_common ? shared : own).entries().push_back(e);
    }
    const std::string path = spec.name + ".";
    common.read(shared, path, problems_);
    for (const Draft& other : drafts_)
      if (other.spec->name == spec.name)
        error(spec.mark, fmt::format("{}: there are two nodes of this name", spec.name));
    if (d.common.stage.empty()) {
      error(spec.mark,
            fmt::format("{}: 'stage' is missing; `melflow stages` lists the stages", spec.name));
    } else if ((d.info = registry_.find(d.common.stage)) == nullptr) {
      error(mark_of(spec, "stage"),
            fmt::format("{}: unknown stage '{}'{}", spec.name, d.common.stage,
                        did_you_mean(d.common.stage, registry_.names())));
    } else {
      d.config = d.info->configure();
      const auto names = d.config->schema().names();
      // Read together, so that an option that implies others is read first.
      Value known_options = Value::map({});
      for (const Value::Entry& e : own.entries()) {
        if (std::find(names.begin(), names.end(), e.key) == names.end()) {
          std::vector<std::string> known = names;
          for (const std::string& c : common.names()) known.push_back(c);
          error(e.key_mark, fmt::format("{}{}: unknown option of {}{}", path, e.key, d.info->name,
                                        did_you_mean(e.key, known)));
        } else {
          known_options.entries().push_back(e);
        }
      }
      d.config->schema().read(known_options, path, problems_);
      d.config->schema().find_unused(known_options, path, unused_);
      const int limit = d.info->traits.max_concurrency;
      if (limit > 0 && d.common.concurrency.value_or(limit) > limit)
        error(mark_of(spec, "concurrency"),
              fmt::format("{}.concurrency: {} is out of range, {} takes at most {}", spec.name,
                          *d.common.concurrency, d.info->name, limit));
    }
    drafts_.push_back(std::move(d));
  }

  void connect(std::size_t index) {
    Draft& d = drafts_[index];
    const NodeSpec& spec = *d.spec;
    std::vector<std::string> names;
    for (const Draft& other : drafts_) names.push_back(other.spec->name);
    for (const std::string& from : d.common.from) {
      auto it = std::find(names.begin(), names.end(), from);
      if (it != names.end()) {
        // From outside, a chain's output is that of its last node.
        const std::size_t written = drafts_[static_cast<std::size_t>(it - names.begin())].written;
        if (written != d.written && from == spec_.nodes[written].name)
          it = std::find(names.begin(), names.end(), outlets_[written]);
      }
      if (it == names.end())
        error(mark_of(spec, "from"), fmt::format("{}.from: there is no node '{}'{}", spec.name,
                                                 from, did_you_mean(from, names)));
      else
        d.from.push_back(static_cast<int>(it - names.begin()));
    }
    if (d.info == nullptr || d.behind) return;
    const bool is_source = d.info->traits.kind == StageKind::source;
    if (is_source && !d.common.from.empty())
      error(mark_of(spec, "from"),
            fmt::format("{}.from: {} is a source and takes no input", spec.name, d.info->name));
    if (is_source && d.common.start_at > 0)
      error(mark_of(spec, "start_at"),
            fmt::format("{}.start_at: {} is a source and has no queue", spec.name, d.info->name));
    if (!is_source && d.common.from.empty())
      error(spec.mark, fmt::format("{}: 'from' is missing: which node's output does it take? It "
                                   "takes {}",
                                   spec.name, d.info->traits.in.name));
    if (d.common.from.size() > 1)
      error(mark_of(spec, "from"),
            fmt::format("{}.from: {} takes one input, {} are given ({})", spec.name, d.info->name,
                        d.common.from.size(), fmt::join(d.common.from, ", ")));
    for (int from : d.from) {
      const Draft& up = drafts_[static_cast<std::size_t>(from)];
      if (up.info == nullptr || is_source) continue;
      if (d.common.start_at > 0 && up.info->traits.lends)
        error(mark_of(spec, "start_at"),
              fmt::format("{}.start_at: what {} ({}) gives holds a place on a device, and those "
                          "that come after wait for one; set it where batches come in, before "
                          "the device",
                          spec.name, up.spec->name, up.info->name));
      if (up.info->traits.kind == StageKind::sink)
        error(mark_of(spec, "from"), fmt::format("{}.from: {} ({}) is a sink and gives nothing",
                                                 spec.name, up.spec->name, up.info->name));
      else if (!(up.info->traits.out == d.info->traits.in))
        error(mark_of(spec, "from"),
              fmt::format("{}.from: {} takes {}, but {} ({}) gives {}{}", spec.name, d.info->name,
                          d.info->traits.in.name, up.spec->name, up.info->name,
                          up.info->traits.out.name, bridge(up.info->traits, d.info->traits)));
    }
  }

  [[nodiscard]] std::vector<int> readers_of(int node) const {
    std::vector<int> out;
    for (std::size_t i = 0; i < drafts_.size(); ++i)
      if (std::find(drafts_[i].from.begin(), drafts_[i].from.end(), node) != drafts_[i].from.end())
        out.push_back(static_cast<int>(i));
    return out;
  }

  // Behind the one node that gives its port to others than nodes of the same port. What is before
  // it has no branch, so that all of the graph's data goes through it.
  void insert(std::size_t index) {
    Draft& d = drafts_[index];
    const NodeSpec& source = spec_.nodes[d.written];
    const auto gives = [&](int i) {
      const StageInfo* info = drafts_[static_cast<std::size_t>(i)].info;
      return info != nullptr && info->traits.out == *d.behind;
    };
    std::vector<int> ends;
    std::vector<std::string> names;
    for (int i = 0; i < static_cast<int>(drafts_.size()); ++i) {
      const std::vector<int> readers = readers_of(i);
      if (!gives(i) || std::all_of(readers.begin(), readers.end(), gives)) continue;
      ends.push_back(i);
      names.push_back(drafts_[static_cast<std::size_t>(i)].spec->name);
    }
    if (ends.empty())
      return error(source.mark, fmt::format("{}: {} has no place in the graph: no node gives {}",
                                            source.name, d.spec->name, d.behind->name));
    if (ends.size() > 1)
      return error(source.mark,
                   fmt::format("{}: {} has several places in the graph: {} leaves the chain at {}; "
                               "let one of these nodes give it to all others",
                               source.name, d.spec->name, d.behind->name, fmt::join(names, " and ")));
    const std::vector<int> readers = readers_of(ends.front());
    d.from = {ends.front()};
    for (const int reader : readers) drafts_[static_cast<std::size_t>(reader)].from = {self(d)};
    std::set<int> seen;
    for (int at = ends.front(); seen.insert(at).second;) {
      const Draft& up = drafts_[static_cast<std::size_t>(at)];
      if (readers_of(at).size() > 1)
        error(source.mark, fmt::format("{}: {} takes a graph without a branch before it, but {} "
                                       "has several readers",
                                       source.name, d.spec->name, up.spec->name));
      if (up.from.empty()) break;
      at = up.from.front();
    }
  }

  [[nodiscard]] int self(const Draft& d) const { return static_cast<int>(&d - drafts_.data()); }

  // A stage that would fit between two ports, as advice.
  std::string bridge(const StageTraits& up, const StageTraits& down) const {
    for (const StageInfo* s : registry_.all())
      if (s->traits.in == up.out && s->traits.out == down.in)
        return fmt::format("; put a {} between them", s->name);
    return "";
  }

  void check_shape() {
    int sources = 0;
    for (const Draft& d : drafts_) {
      if (d.info == nullptr) continue;
      if (d.info->traits.kind == StageKind::source && ++sources > 1)
        error(d.spec->mark,
              fmt::format("{}: a graph has one source, this is the second", d.spec->name));
      if (d.info->traits.kind == StageKind::sink) continue;
      if (readers_of(self(d)).empty() && !d.behind)
        error(d.spec->mark, fmt::format("{}: nothing takes its output ({}); a graph ends in a sink",
                                        d.spec->name, d.info->traits.out.name));
    }
    const bool all_known = std::all_of(drafts_.begin(), drafts_.end(),
                                       [](const Draft& d) { return d.info != nullptr; });
    if (sources == 0 && all_known)
      error(spec_.nodes.empty() ? Mark{} : spec_.nodes.front().mark,
            "the graph has no source; it starts with a stage such as file_list");
    check_cycles();
    check_expansion();
  }

  // A slot that waits for memory keeps its stream's later blocks waiting in the queue before it.
  // They must not be able to keep out the oldest item, as they would behind another such stage; and
  // what is cut from a batch would have to belong to all of its items.
  void check_expansion() {
    for (const Draft& d : drafts_) {
      if (d.info == nullptr || !d.info->traits.expands) continue;
      std::set<int> seen;
      for (int at = d.from.empty() ? -1 : d.from.front(); at >= 0 && seen.insert(at).second;) {
        const Draft& up = drafts_[static_cast<std::size_t>(at)];
        if (up.info != nullptr && up.info->traits.expands)
          error(d.spec->mark,
                fmt::format("{}: {} cuts its input into blocks, but it comes after {} ({}), which "
                            "does so already; only one of them in a row can make progress within "
                            "the memory budget",
                            d.spec->name, d.info->name, up.spec->name, up.info->name));
        if (up.info != nullptr && up.info->traits.kind == StageKind::combine)
          error(d.spec->mark,
                fmt::format("{}: {} cuts its input into blocks, but it comes after {} ({}), which "
                            "puts several items into one; put it before",
                            d.spec->name, d.info->name, up.spec->name, up.info->name));
        at = up.from.empty() ? -1 : up.from.front();
      }
    }
  }

  // Follows `from` upwards; a node met again on its own way is in a cycle.
  void check_cycles() {
    std::set<int> reported;
    for (std::size_t start = 0; start < drafts_.size(); ++start) {
      std::vector<int> way;
      int at = static_cast<int>(start);
      while (std::find(way.begin(), way.end(), at) == way.end()) {
        way.push_back(at);
        const Draft& d = drafts_[static_cast<std::size_t>(at)];
        if (d.from.empty()) break;
        at = d.from.front();
      }
      if (at != static_cast<int>(start) || drafts_[start].from.empty() || reported.count(at) > 0)
        continue;
      std::string text;
      for (int n : way) {
        reported.insert(n);
        text = drafts_[static_cast<std::size_t>(n)].spec->name + " -> " + text;
      }
      const NodeSpec& spec = *drafts_[start].spec;
      error(mark_of(spec, "from"),
            fmt::format("{}.from: the graph has a cycle: {} -> {}", spec.name, spec.name,
                        text.substr(0, text.size() - 4)));
    }
  }

  Plan make() {
    Plan plan;
    plan.host_memory = spec_.host_memory.count;
    plan.pinned_memory = spec_.pinned_memory.count;
    plan.device_memory = spec_.device_memory.count;
    plan.max_failures = spec_.max_failures;
    plan.workers = spec_.workers > 0 ? spec_.workers : available_cpus();
    // Topological order, keeping the order of the description among those that are free to go.
    std::vector<int> place(drafts_.size(), -1);
    while (plan.nodes.size() < drafts_.size()) {
      for (std::size_t i = 0; i < drafts_.size(); ++i) {
        Draft& d = drafts_[i];
        if (place[i] >= 0) continue;
        const int from = d.from.empty() ? -1 : place[static_cast<std::size_t>(d.from.front())];
        if (!d.from.empty() && from < 0) continue;
        place[i] = static_cast<int>(plan.nodes.size());
        PlanNode n;
        n.name = d.spec->name;
        n.written = spec_.nodes[d.written].name;
        n.mark = d.spec->mark;
        n.is_inserted = d.behind.has_value();
        n.info = d.info;
        n.config = std::move(d.config);
        n.stage = n.config->make();
        n.from = from;
        const int limit = d.info->traits.max_concurrency;
        const int by_stage = n.stage->default_concurrency();
        n.concurrency = d.common.concurrency.value_or(limit > 0      ? limit
                                                      : by_stage > 0 ? by_stage
                                                                     : plan.workers);
        // A stage starts only what has a place behind it: fewer places than that would hold it
        // back.
        const int before = from < 0 ? 1 : plan.nodes[static_cast<std::size_t>(from)].concurrency;
        n.queue = d.common.queue.value_or(std::max(2 * n.concurrency, before));
        const bool is_auto = from >= 0 && !d.common.queue;
        n.least_queue = is_auto ? std::max(n.concurrency + 1, before) : n.queue;
        n.greatest_queue = is_auto ? std::min(kMostGrowth * n.queue, kMostPlaces) : n.queue;
        n.start_at = d.common.start_at;
        if (from >= 0) plan.nodes[static_cast<std::size_t>(from)].to.push_back(place[i]);
        plan.nodes.push_back(std::move(n));
      }
    }
    return plan;
  }

  const NodeSpec& spec_of(const PlanNode& n) const {
    return std::find_if(expanded_.begin(), expanded_.end(),
                        [&](const Expanded& e) { return e.spec.name == n.name; })
        ->spec;
  }

  const NodeSpec& written(const std::string& name) const {
    return *std::find_if(spec_.nodes.begin(), spec_.nodes.end(),
                         [&name](const NodeSpec& s) { return s.name == name; });
  }

  void check_stages(Plan& plan) {
    std::vector<Facts> demands(plan.nodes.size()), offers(plan.nodes.size());
    for (std::size_t i = plan.nodes.size(); i-- > 0;) {
      Facts below;
      for (int to : plan.nodes[i].to) {
        const Facts& wanted = demands[static_cast<std::size_t>(to)];
        const Facts others = below;
        for (const std::string& name : below.merge_max(wanted))
          error(spec_of(plan.nodes[i]).mark,
                fmt::format("{}: the branches behind it want different values of {}: {} (from '{}' "
                            "on) and {}; each needs a stage of its own that makes it so",
                            plan.nodes[i].name, name, *wanted.get(name),
                            plan.nodes[static_cast<std::size_t>(to)].name, *others.get(name)));
      }
      demands[i] = plan.nodes[i].stage->demand(below);
    }
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
      PlanNode& n = plan.nodes[i];
      const NodeSpec& spec = spec_of(n);
      const auto text = [&n](const std::string& option, const std::string& message) {
        return n.name + (option.empty() ? "" : "." + option) + ": " + message;
      };
      PlanCheck check(
          [&](const std::string& option, const std::string& message) {
            error(mark_of(spec, option), text(option, message));
          },
          [&](const std::string& option, const std::string& message) {
            plan.warnings.push_back({mark_of(spec, option), text(option, message)});
          });
      Facts below;
      for (int to : n.to) below.merge_max(demands[static_cast<std::size_t>(to)]);
      const Facts given = n.from < 0 ? Facts{} : offers[static_cast<std::size_t>(n.from)];
      offers[i] = n.stage->plan(given, below, check);
    }
  }

  // Each would write over what the other wrote.
  void check_files(const Plan& plan) {
    std::map<std::string, const PlanNode*> makers;
    for (const PlanNode& n : plan.nodes) {
      for (const std::string& path : n.stage->files_made()) {
        if (path.empty()) continue;
        const auto [it, is_first] =
            makers.try_emplace(std::filesystem::absolute(path).lexically_normal().string(), &n);
        if (is_first) continue;
        error(mark_of(spec_of(n), "path"),
              fmt::format("{}: {} would be written by {} ({}), too; give it another path", n.name,
                          path, it->second->name, it->second->info->name));
        break;
      }
    }
  }

  void check_memory(Plan& plan) {
    if (!problems_.empty()) return;
    plan.largest_block = admission_cost(plan, {"", kLargestFile});
    if (plan.largest_block >= kLargestFile) return report_unbounded(plan);
    const bool expands = std::any_of(plan.nodes.begin(), plan.nodes.end(),
                                     [](const PlanNode& n) { return n.info->traits.expands; });
    plan.least_memory = (expands ? 2 : 1) * plan.largest_block;
    if (plan.least_memory > plan.host_memory)
      error(spec_.memory_mark,
            fmt::format("memory.host: {} cannot make progress: the largest block needs {:.1f} MiB "
                        "at once, from reading to rows; allow that or make the blocks smaller "
                        "(decode.block, disk_read.whole)",
                        to_text(Bytes{plan.host_memory}),
                        static_cast<double>(plan.least_memory) / (1 << 20)));
  }

  void report_unbounded(const Plan& plan) {
    std::vector<std::size_t> bound(plan.nodes.size());
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
      const PlanNode& n = plan.nodes[i];
      const std::size_t in = n.from < 0 ? kLargestFile : bound[static_cast<std::size_t>(n.from)];
      bound[i] = n.stage->output_bound({"", kLargestFile}, in);
      if (n.from < 0 || bound[i] < kLargestFile) continue;
      return error(spec_.memory_mark,
                   fmt::format("memory.host: no amount is enough: what {} ({}) gives grows with "
                               "the file; the stages after it need one before them that limits the "
                               "size of a block",
                               n.name, n.info->name));
    }
  }

  // What is before the node, and its own settings.
  static void record_contract(Plan& plan, const PlanNode& n) {
    std::vector<Value> stages;
    if (n.from >= 0)
      stages = plan.nodes[static_cast<std::size_t>(n.from)].stage->contract().items();
    if (n.info->affects_features) {
      Value entry = Value::map({});
      entry.set("stage", Value::scalar(n.info->contract_name));
      const Value own = n.stage->settings().value_or(n.config->schema().echo(false));
      for (const Value::Entry& e : own.entries()) entry.set(e.key, e.value);
      stages.push_back(std::move(entry));
    }
    n.stage->set_contract(Value::list(std::move(stages)));
  }

  void record_settings(Plan& plan) {
    Value graph = Value::map({});
    for (const PlanNode& n : plan.nodes) {
      record_contract(plan, n);
      if (n.name != n.written) continue;  // what is put around a node comes from its options
      Value node = Value::map({});
      node.set("stage", *written(n.name).options.find("stage"));
      const PlanNode* from = &n;
      while (from->from >= 0 && (from->written == n.written || from->is_inserted))
        from = &plan.nodes[static_cast<std::size_t>(from->from)];
      if (from->written != n.written) node.set("from", Value::scalar(from->written));
      node.set("concurrency", Value::scalar(std::to_string(n.concurrency)));
      if (n.from >= 0) {
        node.set("queue",
                 Value::scalar(n.has_auto_queue() ? "auto" : std::to_string(n.queue)));
        node.set("start_at", Value::scalar(number_text(n.start_at)));
      }
      const Value own = n.config->schema().echo();
      for (const Value::Entry& e : own.entries()) node.set(e.key, e.value);
      graph.set(n.name, node);
    }
    Value config = Value::map({});
    config.set("version", Value::scalar("1"));
    Value memory = Value::map({});
    memory.set("host", Value::scalar(to_text(Bytes{plan.host_memory})));
    memory.set("pinned", Value::scalar(to_text(Bytes{plan.pinned_memory})));
    memory.set("device", Value::scalar(to_text(Bytes{plan.device_memory})));
    config.set("memory", memory);
    config.set("max_failures", OptionType<FailureLimit>::echo(plan.max_failures));
    config.set("graph", graph);
    plan.settings = {std::move(config)};
  }

  const GraphSpec& spec_;
  const Registry& registry_;
  std::vector<Expanded> expanded_;    // complete before it is pointed into
  std::vector<std::string> outlets_;  // of each written node: whose output it gives
  std::vector<Draft> drafts_;
  Problems problems_, unused_;
};

}  // namespace

Plan build_plan(const GraphSpec& spec, const Registry& registry) {
  return Builder(spec, registry).build();
}

std::size_t admission_cost(const Plan& plan, const SourceInfo& source) {
  std::vector<std::size_t> bound(plan.nodes.size());
  std::size_t total = 0;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    if (n.info->traits.kind == StageKind::sink) continue;
    const std::size_t in = n.from < 0 ? source.bytes : bound[static_cast<std::size_t>(n.from)];
    bound[i] = n.stage->output_bound(source, in);
    if (n.from >= 0 && !n.stage->passes_on()) total += bound[i];
  }
  return total;
}

}  // namespace melflow
