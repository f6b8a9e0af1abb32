#include "tests/pipeline/test_stages.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "pipeline/stage/join.h"
#include "pipeline/stage/side_by_side.h"
#include "pipeline/stage/stage_abilities.h"

namespace melflow::test {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {  // splitmix64 of both values
  std::uint64_t z = a * 0x9e3779b97f4a7c15ULL + b + 0x7f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

void LiveBytes::add(std::size_t bytes) {
  const std::size_t now = now_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

std::uint64_t first_value(std::size_t item) { return mix(item, 1); }
std::uint64_t stepped(std::uint64_t value, const std::string& node) {
  for (char c : node) value = mix(value, static_cast<unsigned char>(c));
  return value;
}
std::uint64_t beside(std::uint64_t left, std::uint64_t value, std::int64_t row) {
  return mix(left, mix(value, static_cast<std::uint64_t>(row)));
}
bool begins_group(std::size_t number, int group) {
  return number == 0 || mix(number, 99) % static_cast<std::uint64_t>(group) == 0;
}

std::vector<std::size_t> owners_of(const std::vector<int>& counts, int group, bool mixed) {
  std::vector<int> left = counts;
  std::vector<std::size_t> out;
  int total = 0;
  for (const int count : counts) total += count;
  for (int i = 0; i < total; ++i) {
    const auto index = static_cast<std::size_t>(i);
    int at = mixed ? static_cast<int>(mix(index, 77) % static_cast<std::uint64_t>(total - i)) : 0;
    std::size_t owner = 0;
    while (at >= left[owner]) at -= left[owner++];
    --left[owner];
    out.push_back(i > 0 && !begins_group(index, group) ? out.back() : owner);
  }
  return out;
}
std::vector<std::size_t> blocks_of_part(std::size_t k, std::size_t blocks) {
  const std::size_t first = std::min(k / 2, blocks - 1);
  if (k % 2 == 0 || first + 1 == blocks) return {first};
  return {first, first + 1};
}
int block_count(std::size_t item, int blocks, int block) {
  const std::uint64_t of = static_cast<std::uint64_t>(block) * 1000003 + item;
  return 1 + static_cast<int>(mix(of, 77) % static_cast<std::uint64_t>(blocks));
}
bool ends_sub_item(std::uint64_t value) { return value % 3 != 0; }

namespace {

using NumberPtr = std::shared_ptr<const Number>;
using BatchPtr = std::shared_ptr<const Batch>;

struct StageOptions {
  std::string node;
  int items = 100;
  int group = 1;    // numbers: how many numbers one item represents, at most
  int blocks = 4;   // expand: most blocks for an item, or for a block
  int batch = 4;    // gather: numbers in a full batch
  Bytes size{100};  // output bound; payloads have 1 to this many bytes
  int work = 0;     // most rounds of hashing per call
  bool own_threads = false;
  bool elsewhere = false;  // step: items are in flight in an engine and finish in any order
  bool fills = false;      // step: the engine returns nothing before all its slots were full
  bool ahead = false;      // numbers: some are prefetched
  bool mixed = false;      // numbers: items of several sources come in mixed order
  bool ordered = false;
  bool any_order = false;  // step: blocks of one item need not come in order
  int outputs = 2;         // fork
  bool drops = false;      // fork: some items leave by no output
  int rows = 1;            // batch_step: most numbers of an item in a block
  int lag = 0;             // beside: input k emits k * lag rows fewer, until the last block
  bool nested = false;     // expand: an input that waits for its turn leaves the queue
  bool holes = false;      // expand: no output for block 0, 3, 6, ..., except the last

  void describe(Schema& s) {
    s.field("items", items, "").at_least(0);
    s.field("group", group, "").range(1, 1000);
    s.field("blocks", blocks, "").range(1, 1000);
    s.field("batch", batch, "").range(1, 1000);
    s.field("size", size, "");
    s.field("work", work, "").tuning();
    s.field("own_threads", own_threads, "");
    s.field("elsewhere", elsewhere, "");
    s.field("fills", fills, "");
    s.field("ahead", ahead, "").tuning();
    s.field("mixed", mixed, "");
    s.field("ordered", ordered, "");
    s.field("any_order", any_order, "");
    s.field("rows", rows, "").range(1, 1000);
    s.field("lag", lag, "").range(0, 100);
    s.field("nested", nested, "").tuning();
    s.field("holes", holes, "");
    s.field("outputs", outputs, "").range(1, 10);
    s.field("drops", drops, "");
    s.field("node", node, "name of the node");
  }
};

// Counts a call of process(), and checks both bounds from inside.
class Visit {
 public:
  Visit(World& world, NodeLog& log, bool gives = true, bool has_queue = true)
      : log_(log), visit_(log.probe) {
    if (visit_.now() > log.concurrency)
      world.complain(
          fmt::format("{} in process() where {} are allowed", visit_.now(), log.concurrency));
    if (log.up != nullptr && world.check_edges && has_queue &&
        !(log.comes_again && log.up->items_per_task > 1)) {
      // Read in this order, the count never exceeds the true number at the first moment.
      const long given = log.up->given.load();
      const long lost = log.up->lost.load();
      const long finished = log.finished.load();
      // A source makes its next item before there is room for it.
      const long bound =
          (log.queue + log.concurrency + (log.up->is_source ? 1 : 0)) * log.up->items_per_task;
      if (given - lost - finished > bound)
        world.complain(
            fmt::format("{} given and not finished where queue {} and concurrency {} "
                        "allow {}",
                        given - lost - finished, log.queue, log.concurrency, bound));
    }
    ++log.started;
    if (gives) ++log.given;
  }
  ~Visit() { ++log_.finished; }

 private:
  NodeLog& log_;
  ConcurrencyProbe::Visit visit_;
};

// The common base of all test stages.
class Common {
 public:
  Common(StageOptions options, World& world)
      : options_(std::move(options)), world_(world), log_(world.log(options_.node)) {
    if (const auto it = world.hooks.find(options_.node); it != world.hooks.end())
      hook_ = it->second;
  }

 protected:
  // Works for a time that differs from item to item, then calls the test's hook.
  std::optional<ItemError> act(const Number& in, ItemContext* context) const {
    if (options_.work > 0) {
      const std::uint64_t seed = mix(in.value, static_cast<std::uint64_t>(log_.started.load()));
      std::uint64_t x = seed;
      const std::uint64_t rounds = seed % static_cast<std::uint64_t>(options_.work);
      for (std::uint64_t i = 0; i < rounds; ++i) x = mix(x, i);
      if (x % 4 == 0) std::this_thread::yield();
    }
    return hook_ ? hook_(in, context) : std::nullopt;
  }
  NumberPtr make(const Number& in, int block, std::uint64_t value) const {
    return make(in.item, block, value, in.row);
  }
  NumberPtr make(std::size_t item, int block, std::uint64_t value, int row = -1) const {
    return std::make_shared<const Number>(world_.live, item, block, value,
                                          1 + value % std::max<std::size_t>(options_.size.count, 1),
                                          row);
  }
  void on_start(RunContext& run) {
    if (const auto it = world_.on_start.find(options_.node); it != world_.on_start.end())
      it->second(run);
  }
  void on_finish(RunContext& run, Ending ending) {
    if (const auto it = world_.on_finish.find(options_.node); it != world_.on_finish.end())
      it->second(run, ending);
  }

  const StageOptions options_;
  World& world_;
  NodeLog& log_;
  World::Hook hook_;
};

template <class Base>
class Bounded : public Base, public HoldsItems, protected Common {
 public:
  Bounded(const StageOptions& options, World& world) : Common(options, world) {}
  Bounded(const StageOptions& options, World& world, const StageTraits& traits)
      : Base(traits), Common(options, world) {}
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t) const override {
    return options_.size.count;
  }
  [[nodiscard]] StageResources resources() const override {
    return {.blocking = options_.own_threads, .size_option = "size"};
  }
  void start(RunContext& run) override { on_start(run); }
  void drop_waiting() override {
    if (const auto it = world_.on_drop_waiting.find(options_.node);
        it != world_.on_drop_waiting.end())
      it->second();
  }
  void drop_lost() override {
    if (const auto it = world_.on_drop_lost.find(options_.node); it != world_.on_drop_lost.end())
      it->second();
  }
  void finish(RunContext& run, Ending ending) override { on_finish(run, ending); }
};

// Passes its input on unchanged.
template <class Base>
class HandsOn : public Bounded<Base> {
 public:
  using Bounded<Base>::Bounded;
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return input;
  }
  [[nodiscard]] StageResources resources() const override {
    StageResources out = Bounded<Base>::resources();
    out.passes_on = true;
    return out;
  }
};

class Numbers final : public Bounded<Source<Number>>, public MakesAhead, public UnitesSources {
 public:
  static constexpr const char* kName = "numbers";
  using Bounded::Bounded;
  static std::vector<std::string> options_of_run() { return {"ahead", "group", "mixed"}; }
  std::unique_ptr<SourceStage> unite(const std::vector<Named>& sources) override {
    StageOptions options = options_;
    options.node = "sources";
    options.items = 0;
    std::vector<int> counts;
    for (const Named& n : sources) {
      counts.push_back(static_cast<const Numbers*>(n.source)->options_.items);
      options.items += counts.back();
    }
    auto out = std::make_unique<Numbers>(options, world_);
    out->owners_ = owners_of(counts, options.group, options.mixed);
    return out;
  }
  std::size_t source_of(std::size_t index) const override { return owners_.at(index); }
  bool makes_ahead() const override { return options_.ahead; }
  std::size_t count() const override { return static_cast<std::size_t>(options_.items); }
  SourceItem item(std::size_t index) override {
    std::optional<Visit> visit;  // bounds only apply to items that are not prefetched
    if (options_.ahead)
      ++log_.started;
    else
      visit.emplace(world_, log_);
    SourceItem out;
    auto number = std::make_shared<const Number>(world_.live, index, 0, first_value(index), 0);
    act(*number, nullptr);
    out.payload = std::move(number);
    out.info.bytes = world_.file_bytes(index);
    while (index + out.records < count() && !begins_group(index + out.records, options_.group))
      ++out.records;
    return out;
  }
  std::string name(std::size_t index) const override { return "item" + std::to_string(index); }

 private:
  std::vector<std::size_t> owners_;
};

class Step final : public Bounded<Transform<Number, Number>>, public HasEngine {
 public:
  static constexpr const char* kName = "step";
  Step(const StageOptions& options, World& world) : Bounded(options, world) {
    if (options.any_order) traits_.order = BlockOrder::any;
  }
  [[nodiscard]] std::unique_ptr<Engine> engine(int slots) override {
    if (!options_.elsewhere) return nullptr;
    return std::make_unique<Elsewhere>(*this, slots);
  }
  Result<NumberPtr> process(NumberPtr in, ItemContext& context) const override {
    const Visit visit(world_, log_);
    if (auto error = act(*in, &context)) {
      ++log_.lost;
      return *error;
    }
    return make(*in, in->block, stepped(in->value, options_.node));
  }

 private:
  // Finishes the item that was begun last first.
  class Elsewhere final : public Engine {
   public:
    Elsewhere(const Step& step, int slots)
        : step_(step),
          slots_(static_cast<std::size_t>(slots)),
          holds_until_(step.options_.fills ? slots_ : 1) {}
    void begin(void* tag, const Item& item, const ItemContext& context) override {
      if (held_.size() >= slots_) step_.world_.complain("an engine was given more than its slots");
      ItemContext mine = context;
      auto out = step_.process(payload_of<Number>(item), mine);
      held_.push_back({tag, out ? Result<Emission>(emission(std::move(*out)))
                                : Result<Emission>(std::move(out.error()))});
    }
    void collect(std::vector<Done>& done) override {
      std::unique_lock lock(mutex_);
      woken_.wait(lock, [this] { return is_woken_ || held_.size() >= holds_until_; });
      if (std::exchange(is_woken_, false) || held_.size() < holds_until_) return;
      holds_until_ = 1;
      done.push_back(std::move(held_.back()));
      held_.pop_back();
    }
    void wake() override {
      {
        const std::lock_guard lock(mutex_);
        is_woken_ = true;
      }
      woken_.notify_one();
    }

   private:
    const Step& step_;
    const std::size_t slots_;
    std::size_t holds_until_;  // until this many are held
    std::vector<Done> held_;   // accessed only by the driver's thread
    std::mutex mutex_;
    std::condition_variable woken_;
    bool is_woken_ = false;
  };
};

// Emits nothing for every second block but the last; with holes it wrongly drops last blocks of
// sub-items, too.
class Thin final : public HandsOn<Transform<Number, Number>> {
 public:
  static constexpr const char* kName = "thin";
  using HandsOn::HandsOn;
  Result<NumberPtr> process(NumberPtr in, ItemContext& context) const override {
    const Visit visit(world_, log_);
    if (auto error = act(*in, &context)) {
      ++log_.lost;
      return *error;
    }
    const Origin& origin = context.origin();
    if (origin.last || (origin.ends() && !options_.holes) || in->block % 2 == 0) return in;
    ++log_.lost;
    return NumberPtr{};
  }
};

// Numbers the blocks of an item in the order in which they are emitted, whatever they are cut from.
struct GivenBlocks final : StageState {
  int next = 0;
  int row = 0;  // within the sub-item
};

// Emits several blocks per input; as sub-items, some of which continue with the next input.
template <class Kind>
class ExpandBase : public Bounded<Kind> {
 public:
  using Bounded<Kind>::Bounded;
  using Cursor = typename Kind::Cursor;
  using Block = typename Kind::Block;
  Result<std::unique_ptr<Cursor>> open(NumberPtr in, ItemContext& context) const override {
    if (!context.state()) context.state() = std::make_unique<GivenBlocks>();
    return std::unique_ptr<Cursor>(std::make_unique<Blocks>(*this, std::move(in)));
  }

 private:
  class Blocks final : public Cursor {
   public:
    Blocks(const ExpandBase& stage, NumberPtr in) : stage_(stage), in_(std::move(in)) {}
    Result<Block> next(ItemContext& context) override {
      const Visit visit(stage_.world_, stage_.log_, true, !stage_.options_.nested);
      const int count = block_count(in_->item, stage_.options_.blocks, in_->block);
      const int at = next_++;
      if (stage_.options_.holes && at % 3 == 0 && next_ < count) {
        ++stage_.log_.lost;
        return Block{nullptr, true};
      }
      auto& given = static_cast<GivenBlocks&>(*context.state());
      const int block = given.next++;
      auto out = stage_.make(
          in_->item, block,
          mix(stepped(in_->value, stage_.options_.node), static_cast<std::uint64_t>(block)),
          given.row++);
      if (auto error = stage_.act(*out, &context)) {
        ++stage_.log_.lost;
        return *error;
      }
      const bool more = next_ < count;
      const bool is_last = !more && context.origin().ends();
      const bool ends = is_last || ends_sub_item(out->value);
      if (is_last || (ends && stage_.traits().divides)) given.row = 0;
      return Block{std::move(out), more, ends};
    }

   private:
    const ExpandBase& stage_;
    const NumberPtr in_;
    int next_ = 0;
  };
};
class ExpandNumber final : public ExpandBase<Expand<Number, Number>> {
 public:
  static constexpr const char* kName = "expand";
  using ExpandBase::ExpandBase;
};
class DivideNumber final : public ExpandBase<Divide<Number, Number>> {
 public:
  static constexpr const char* kName = "divide";
  using ExpandBase::ExpandBase;
};

// Needs every earlier block to have passed: checks their order, and that they come one by one.
struct RunningState final : StageState {
  std::uint64_t sum = 0;
  int next_block = 0;
  int inside = 0;  // not atomic: the framework orders the blocks of one stream
};

class Running final : public Bounded<StreamTransform<Number, Number, RunningState>> {
 public:
  static constexpr const char* kName = "running";
  using Bounded::Bounded;
  Result<NumberPtr> process_block(NumberPtr in, RunningState& state,
                                  ItemContext& context) const override {
    const Visit visit(world_, log_);
    if (++state.inside != 1) world_.complain("two blocks of one stream at once");
    if (context.origin().sub_item && state.next_block == 0) state.next_block = in->block;
    if (in->block != state.next_block)
      world_.complain(fmt::format("block {} of item {} where {} is next", in->block, in->item,
                                  state.next_block));
    if (context.origin().first != (in->block == 0))
      world_.complain("the mark of the first block is not where it belongs");
    ++state.next_block;
    state.sum = mix(state.sum, in->value);
    std::optional<ItemError> error = act(*in, &context);
    --state.inside;
    if (error) {
      ++log_.lost;
      return *error;
    }
    return make(*in, in->block, stepped(state.sum, options_.node));
  }
};

// Parts of one or two blocks; the second block of a part is the first one of the next part.
struct PartsState final : StageState {
  std::size_t block = 0;
  std::size_t first_record = 0;
  std::shared_ptr<Stream> part;
  int given = 0;  // pieces emitted of the part
};
struct PartsCursor final : StageState {};

class Parts final : public Bounded<ItemStage> {
 public:
  static constexpr const char* kName = "parts";
  Parts(const StageOptions& options, World& world)
      : Bounded(options, world,
                {.kind = StageKind::transform,
                 .in = port_type<Number>(),
                 .out = port_type<Number>(),
                 .cuts = true}) {}
  Result<Emission> run(const Item& item, std::unique_ptr<StageState>& cursor,
                       ItemContext& context) override {
    // A block that waits for its turn leaves the queue.
    const Visit visit(world_, log_, true, false);
    const NumberPtr in = payload_of<Number>(item);
    Stream& stream = *context.origin().stream;
    auto& kept = context.state();
    if (!kept) {
      kept = std::make_unique<PartsState>();
      static_cast<PartsState&>(*kept).first_record = stream.index();
    }
    auto& state = static_cast<PartsState&>(*kept);
    const bool is_last = context.origin().last;
    Emission out;
    if (cursor)
      out = piece(*in, is_last, state, stream, context);
    else
      ++log_.lost;
    if (begin_next(is_last, state, stream)) {
      cursor = std::make_unique<PartsCursor>();
      out.more = true;
      out.part.next_bytes = options_.size.count;
      out.part.next_record = state.part->index();
      return out;
    }
    cursor.reset();
    ++state.block;
    if (is_last) kept.reset();
    return out;
  }

 private:
  // Returns whether the current block has a piece left.
  static bool begin_next(bool is_last, PartsState& state, Stream& stream) {
    if (!state.part) {
      if (!stream.has_next_part()) return false;
      const std::size_t k = stream.next_part() - state.first_record;
      if (k / 2 > state.block && !is_last) return false;
      state.part = stream.begin_part();
      state.given = 0;
      return true;
    }
    return state.block > (state.part->index() - state.first_record) / 2;
  }
  Emission piece(const Number& in, bool is_last, PartsState& state, Stream& stream,
                 ItemContext& context) const {
    const std::size_t record = state.part->index(), k = record - state.first_record;
    const NumberPtr out = make(record, state.given, mix(in.value, record));
    if (auto error = act(*out, &context)) world_.complain("a fate in a node of parts");
    Emission e = emission(out);
    e.part.stream = state.part;
    e.part.first = state.given++ == 0;
    e.part.last = k % 2 == 0 || state.given == 2 || is_last;
    if (e.part.last) {
      state.part.reset();
      stream.end_part();
    }
    return e;
  }
};

class Gather final : public Bounded<Combine<Number, Batch>> {
 public:
  static constexpr const char* kName = "gather";
  Gather(const StageOptions& options, World& world) : Bounded(options, world) {
    traits_.order = BlockOrder::kept;
  }
  Result<bool> push(NumberPtr in, ItemContext& context) override {
    const Visit visit(world_, log_, false);
    if (auto error = act(*in, &context)) return std::move(*error);
    parts_.push_back(std::move(in));
    return parts_.size() >= static_cast<std::size_t>(options_.batch);
  }
  Result<BatchPtr> pull(ItemContext& context) override {
    ++log_.given;
    if (parts_.size() != context.item().origins->size())
      world_.complain("a batch has other origins than parts");
    if (parts_.empty()) world_.complain("an empty batch was taken");
    if (parts_.size() > static_cast<std::size_t>(options_.batch))
      world_.complain("a batch grew beyond its size");
    auto out = std::make_shared<Batch>();
    out->parts = std::exchange(parts_, {});
    if (const auto it = world_.on_pull.find(options_.node); it != world_.on_pull.end())
      if (auto error = it->second(*out, context)) return std::move(*error);
    return BatchPtr(std::move(out));
  }

 private:
  std::vector<NumberPtr> parts_;
};

class BatchStep final : public Bounded<Transform<Batch, Batch>> {
 public:
  static constexpr const char* kName = "batch_step";
  BatchStep(const StageOptions& options, World& world) : Bounded(options, world) {
    if (options.any_order) traits_.order = BlockOrder::any;
  }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t) const override {
    return options_.size.count * static_cast<std::size_t>(options_.rows);
  }
  Result<BatchPtr> process(BatchPtr in, ItemContext& context) const override {
    const Visit visit(world_, log_);
    auto out = std::make_shared<Batch>();
    for (std::size_t i = 0; i < in->parts.size(); ++i) {
      const NumberPtr& part = in->parts[i];
      if (auto error = act(*part, &context)) context.fail(i, std::move(*error));
      out->parts.push_back(make(*part, part->block, stepped(part->value, options_.node)));
    }
    if (out->parts.size() != context.item().origins->size())
      world_.complain("a batch has other origins than parts");
    return BatchPtr(out);
  }
};

}  // namespace

int way_of(std::size_t item, const std::string& node, int outputs, bool drops) {
  std::uint64_t x = mix(item, static_cast<std::uint64_t>(outputs));
  for (const char c : node) x = mix(x, static_cast<std::uint64_t>(c));
  const int way = static_cast<int>(x % static_cast<std::uint64_t>(outputs + (drops ? 1 : 0)));
  return way == outputs ? -1 : way;
}

namespace {

class Fork final : public HandsOn<ItemStage> {
 public:
  static constexpr const char* kName = "fork";
  Fork(const StageOptions& options, World& world)
      : HandsOn(options, world,
                {.kind = StageKind::transform,
                 .in = port_type<Number>(),
                 .out = port_type<Number>(),
                 .order = BlockOrder::kept}) {}
  static std::vector<std::string> outputs(const NodeSpec& spec) {
    std::vector<std::string> out;
    const Value* count = spec.options.find("outputs");
    for (int i = 0; count != nullptr && i < std::stoi(count->text()); ++i)
      out.push_back(fmt::format("o{}", i));
    return out;
  }
  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&,
                       ItemContext& context) override {
    const Visit visit(world_, log_);
    const NumberPtr in = payload_of<Number>(item);
    if (auto error = act(*in, &context)) {
      ++log_.lost;
      return *error;
    }
    const int way = way_of(in->item, options_.node, options_.outputs, options_.drops);
    if (context.origin().first) context.route(way, ItemError::skipped("goes elsewhere"));
    Emission out{item.payload, item.bytes, item.rows};
    out.output = way;
    return way < 0 ? Emission{} : out;
  }
};

class Join final : public HandsOn<ItemStage> {
 public:
  static constexpr const char* kName = "join";
  Join(const StageOptions& options, World& world)
      : HandsOn(options, world,
                {.kind = StageKind::transform,
                 .in = port_type<Number>(),
                 .out = port_type<Number>(),
                 .order = BlockOrder::kept,
                 .joins = true}) {}
  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&,
                       ItemContext& context) override {
    const Visit visit(world_, log_);
    if (auto error = act(*payload_of<Number>(item), &context)) return *error;
    return Emission{item.payload, item.bytes, item.rows};
  }
};

// Emits every number by both outputs, by the second with another value.
class Twin final : public Bounded<Split<Number, Number, Number>> {
 public:
  static constexpr const char* kName = "twin";
  using Bounded::Bounded;
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t) const override {
    return 2 * options_.size.count;
  }
  static std::vector<std::string> outputs(const NodeSpec&) { return {"o0", "o1"}; }
  Result<Parts> process(NumberPtr in, ItemContext& context) const override {
    const Visit visit(world_, log_);
    if (auto error = act(*in, &context)) {
      ++log_.lost;
      return std::move(*error);
    }
    return Parts{make(*in, in->block, in->value), make(*in, in->block, mix(in->value, 1))};
  }
};

// Combines the two numbers that were made of the same block.
class Meet final : public Bounded<melflow::Join<Number, Number, Number>> {
 public:
  static constexpr const char* kName = "meet";
  using Bounded::Bounded;
  Result<NumberPtr> process(NumberPtr first, NumberPtr second,
                            ItemContext& context) const override {
    const Visit visit(world_, log_);
    if (first->item != second->item || first->block != second->block)
      world_.complain("two numbers of different blocks meet");
    auto out = make(*first, first->block,
                    beside(beside(0, first->value, first->row), second->value, second->row));
    if (auto error = act(*out, &context)) {
      ++log_.lost;
      return std::move(*error);
    }
    return out;
  }
};

// Emits a row per block: row p of an item combines the inputs' values there. Blocks of input k are
// k * lag rows late, except the last one, which has all remaining rows.
template <class In>
class Beside : public SideBySide, protected Common {
 public:
  Beside(const StageOptions& options, World& world)
      : SideBySide(port_type<In>(), port_type<Batch>()), Common(options, world) {}
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t) const override {
    return 0;
  }
  [[nodiscard]] StageResources resources() const override {
    return {.blocking = options_.own_threads, .size_option = "size"};
  }

 protected:
  Piece piece(const Item& item, std::size_t part, std::size_t input) const override {
    NumberPtr number;
    if constexpr (std::is_same_v<In, Batch>)
      number = payload_of<Batch>(item)->parts[part];
    else
      number = payload_of<Number>(item);
    const auto row = [&](int block) {
      return std::max<std::int64_t>(0, block - static_cast<std::int64_t>(input) * options_.lag);
    };
    const bool last = (*item.origins)[part].ends();
    const std::int64_t first = row(number->row);
    const std::int64_t end = last ? number->row + 1 : row(number->row + 1);
    return {number, first, end - first, last};
  }
  std::shared_ptr<const void> copy(const Slice& rows, std::size_t) const override {
    const auto& n = *static_cast<const Number*>(rows.data.get());
    return std::make_shared<const Number>(world_.live, n.item, n.block, n.value, 0, n.row);
  }
  Emission give(std::vector<Ready> ready, Origins& origins, ItemContext& context) const override {
    const Visit visit(world_, log_);
    auto out = std::make_shared<Batch>();
    for (Ready& r : ready) {
      if (r.count < 1) world_.complain("no row, though every last block has one");
      std::vector<std::uint64_t> values(static_cast<std::size_t>(r.count), 0);
      std::vector<int> blocks;  // of the first input, one per row
      std::size_t item = 0;
      for (const auto& slices : r.inputs) {
        std::size_t at = 0;
        for (const Slice& s : slices) {
          const auto& n = *static_cast<const Number*>(s.data.get());
          item = n.item;
          if (&slices == r.inputs.data()) blocks.push_back(n.block);
          for (std::int64_t i = 0; i < s.count; ++i, ++at)
            values[at] = beside(values[at], n.value, r.first + static_cast<std::int64_t>(at));
        }
        if (at != values.size()) world_.complain("an input has not the rows that go on");
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        const int row = static_cast<int>(r.first) + static_cast<int>(i);
        out->parts.push_back(
            std::make_shared<const Number>(world_.live, item, blocks[i], values[i], 0, row));
        Origin origin = r.origin;
        origin.first = origin.first && i == 0;
        origin.last = origin.last && i + 1 == values.size();
        origin.is_last_of_sub_item = origin.is_last_of_sub_item && i + 1 == values.size();
        origins.push_back(std::move(origin));
        if (auto error = act(*out->parts.back(), &context)) context.fail(r.part, std::move(*error));
      }
    }
    return emission(std::shared_ptr<const Batch>(std::move(out)));
  }
};
class NumbersBeside final : public Beside<Number> {
 public:
  static constexpr const char* kName = "beside";
  using Beside::Beside;
};
class BatchesBeside final : public Beside<Batch> {
 public:
  static constexpr const char* kName = "batch_beside";
  using Beside::Beside;
};

class ToWord final : public Bounded<Transform<Number, Word>> {
 public:
  static constexpr const char* kName = "to_word";
  using Bounded::Bounded;
  Result<std::shared_ptr<const Word>> process(NumberPtr, ItemContext&) const override {
    return std::make_shared<const Word>();
  }
};

}  // namespace

// The part of a sink that writes rows.
class Collector {
 public:
  explicit Collector(World& world) : world_(world) {}

  void start(RunContext& run, bool ordered) {
    ledger_ = &run.ledger;
    ordered_ = ordered;
    if (ordered) run.ledger.subscribe([this](std::size_t, Outcome) { advance(); });
  }

  // Existing rows of this item do not count.
  void left_out(std::size_t item) {
    const std::lock_guard lock(mutex_);
    if (!left_out_.insert(item).second) world_.complain("omitted twice");
  }

  void take(const Origin& origin, const NumberPtr& number) {
    Parked here{origin, number};
    {
      const std::lock_guard lock(mutex_);
      if (!ordered_) {
        rows_.push_back({number->item, number->block, number->value, place_of(origin)});
      } else if (origin.stream->index() == head_) {
        write(*number, origin);
      } else {
        if (origin.stream->index() < head_) world_.complain("a piece of an item that was closed");
        parked_.emplace(origin.stream->index(), std::move(here));
        peak_parked_ = std::max(peak_parked_, parked_.size());
      }
    }
  }  // frees a written piece outside the lock, since that may close its stream

  void finish() {
    if (!ordered_) return;
    advance();
    const std::lock_guard lock(mutex_);
    if (!parked_.empty()) world_.complain("pieces are parked after the end");
    if (head_ != ledger_->counts().found) world_.complain("items are open after the end");
  }

  std::vector<Row>& rows() { return rows_; }
  std::size_t peak_parked() const { return peak_parked_; }

 private:
  struct Parked {
    Origin origin;
    NumberPtr number;
  };

  static std::size_t place_of(const Origin& origin) {
    return origin.sub_item ? origin.sub_item->place : 0;
  }
  void write(const Number& n, const Origin& origin) {
    if (!written_.emplace(n.block, Row{n.item, n.block, n.value, place_of(origin)}).second)
      world_.complain("a block came twice");
  }

  // Settles all items before the oldest open one: their rows are written or dropped. Parked blocks
  // of the oldest open one continue, which may close it and call this function again; the loop
  // avoids a recursion as deep as the number of parked items.
  void advance() {
    std::unique_lock lock(mutex_);
    again_ = true;
    if (std::exchange(advancing_, true)) return;
    while (std::exchange(again_, false)) {
      const std::size_t open = ledger_->oldest_open();
      while (head_ < open) {
        if (ledger_->outcome(head_) == Outcome::ok && !left_out_.contains(head_))
          for (const auto& [block, row] : written_) rows_.push_back(row);
        written_.clear();
        ++head_;
        // A closed item has nothing parked: parked blocks keep it open.
        if (head_ < open && parked_.contains(head_)) world_.complain("parked, but closed");
      }
      std::vector<Parked> go;
      const auto [begin, end] = parked_.equal_range(head_);
      for (auto it = begin; it != end; ++it) {
        write(*it->second.number, it->second.origin);
        go.push_back(std::move(it->second));
      }
      parked_.erase(begin, end);
      lock.unlock();
      go.clear();
      lock.lock();
    }
    advancing_ = false;
  }

  World& world_;
  Ledger* ledger_ = nullptr;
  bool ordered_ = false;
  std::mutex mutex_;
  std::vector<Row> rows_;
  std::map<int, Row> written_;  // blocks of the item head_
  std::multimap<std::size_t, Parked> parked_;
  std::size_t head_ = 0;
  std::set<std::size_t> left_out_;
  std::size_t peak_parked_ = 0;
  bool advancing_ = false, again_ = false;
};

namespace {

template <class In>
class KeepBase : public Bounded<Sink<In>>, public NotesLeftOut {
 public:
  KeepBase(const StageOptions& options, World& world) : Bounded<Sink<In>>(options, world) {
    // Sorts blocks itself.
    if (options.ordered || options.any_order) this->traits_.order = BlockOrder::any;
  }
  void start(RunContext& run) override {
    collector_ = &this->world_.collector(this->options_.node);
    collector_->start(run, this->options_.ordered);
    this->on_start(run);
  }
  void left_out(std::size_t index, int, const ItemError&) override { collector_->left_out(index); }
  void finish(RunContext& run, Ending ending) override {
    collector_->finish();
    this->on_finish(run, ending);
  }

 protected:
  Collector* collector_ = nullptr;
};

class Keep final : public KeepBase<Number> {
 public:
  static constexpr const char* kName = "keep";
  using KeepBase::KeepBase;
  std::optional<ItemError> consume(NumberPtr in, ItemContext& context) override {
    const Visit visit(world_, log_);
    if (auto error = act(*in, &context)) return error;
    collector_->take(context.origin(), in);
    return {};
  }
};

class BatchKeep final : public KeepBase<Batch> {
 public:
  static constexpr const char* kName = "batch_keep";
  using KeepBase::KeepBase;
  std::optional<ItemError> consume(BatchPtr in, ItemContext& context) override {
    const Visit visit(world_, log_);
    for (std::size_t i = 0; i < in->parts.size(); ++i) {
      if (auto error = act(*in->parts[i], &context)) context.fail(i, std::move(*error));
      if (!context.is_lost(i)) collector_->take(context.origin(i), in->parts[i]);
    }
    return {};
  }
};

template <class S>
StageInfo info_of(World& world) {
  struct Config final : StageConfig {
    explicit Config(World& w) : world(w) { options.describe(bound); }
    const Schema& schema() const override { return bound; }
    std::unique_ptr<Stage> make() const override { return std::make_unique<S>(options, world); }
    World& world;
    StageOptions options;
    Schema bound;
  };
  StageInfo info;
  info.name = S::kName;
  info.affects_features = true;
  info.traits = S(StageOptions{}, world).traits();
  if constexpr (NamesOutputs<S>) info.outputs = S::outputs;
  if constexpr (HasOptionsOfRun<S>) info.options_of_run = S::options_of_run();
  info.configure = [&world] { return std::make_unique<Config>(world); };
  return info;
}

}  // namespace

World::World() {
  registry.add(info_of<Numbers>(*this));
  registry.add(info_of<Step>(*this));
  registry.add(info_of<Thin>(*this));
  registry.add(info_of<ExpandNumber>(*this));
  registry.add(info_of<DivideNumber>(*this));
  registry.add(info_of<Running>(*this));
  registry.add(info_of<Parts>(*this));
  registry.add(info_of<Gather>(*this));
  registry.add(info_of<BatchStep>(*this));
  registry.add(info_of<ToWord>(*this));
  registry.add(info_of<Fork>(*this));
  registry.add(info_of<Join>(*this));
  registry.add(info_of<Twin>(*this));
  registry.add(info_of<Meet>(*this));
  registry.add(info_of<NumbersBeside>(*this));
  registry.add(info_of<BatchesBeside>(*this));
  registry.add(info_of<Keep>(*this));
  registry.add(info_of<BatchKeep>(*this));
}
World::~World() = default;

NodeLog& World::log(const std::string& node) {
  const std::lock_guard lock(mutex_);
  auto& log = logs_[node];
  if (!log) log = std::make_unique<NodeLog>();
  return *log;
}

Collector& World::collector(const std::string& node) {
  const std::lock_guard lock(mutex_);
  auto& collector = collectors_[node];
  if (!collector) collector = std::make_unique<Collector>(*this);
  return *collector;
}

std::vector<Row>& World::rows(const std::string& node) { return collector(node).rows(); }

void World::complain(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (complaints_.size() < 10) complaints_.push_back(text);
}

std::vector<std::string> World::complaints() const {
  const std::lock_guard lock(mutex_);
  return complaints_;
}

std::string World::state() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [name, log] : logs_)
    if (!name.empty())
      out += fmt::format("{}: {} started, {} finished; ", name, log->started.load(),
                         log->finished.load());
  return out;
}

}  // namespace melflow::test
