// The kinds of stages a graph is made of. Derive from one of the templates at the end:
//
//   Source<Out>            makes items by index; knows their names and sizes
//   Transform<In, Out>     one item in, one out; const, many at a time
//   StreamTransform<...>   the same with state that lives from block to block of one stream
//   Expand<In, Out>        one item in, one or more blocks out, each within the memory ticket
//   Combine<In, Out>       many items in, one out (batches)
//   Sink<In>               takes items, gives none
//
// A payload type has `static constexpr const char* kName` and the members bytes() and rows(), which
// the report counts.
#pragma once

#include <cstddef>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

#include "pipeline/item.h"
#include "pipeline/memory.h"
#include "pipeline/result.h"
#include "pipeline/value.h"

namespace melflow {

/// What is known before the run about the items on an edge, by name ("sample_rate"). Stages agree
/// on the names; the framework only hands them on.
class Facts {
 public:
  void set(const std::string& name, double value) { values_[name] = value; }
  void erase(const std::string& name) { values_.erase(name); }
  [[nodiscard]] std::optional<double> get(const std::string& name) const {
    const auto it = values_.find(name);
    return it == values_.end() ? std::nullopt : std::optional(it->second);
  }
  [[nodiscard]] double get_or(const std::string& name, double fallback) const {
    return get(name).value_or(fallback);
  }
  /// Something larger that stages agree on; the reader names the type the writer used.
  template <class T>
  void set_object(const std::string& name, std::shared_ptr<const T> object) {
    objects_[name] = std::move(object);
  }
  template <class T>
  [[nodiscard]] std::shared_ptr<const T> get_object(const std::string& name) const {
    const auto it = objects_.find(name);
    return it == objects_.end() ? nullptr : std::static_pointer_cast<const T>(it->second);
  }
  void erase_object(const std::string& name) { objects_.erase(name); }
  /// A value that all readers of one edge have to want alike.
  void set_exact(const std::string& name, double value) {
    set(name, value);
    exact_.insert(name);
  }
  /// For every name the larger value: what several readers of one edge need together. Of objects the
  /// first one stays. Returns the names of exact values that differ.
  std::vector<std::string> merge_max(const Facts& other);

 private:
  std::map<std::string, double> values_;
  std::set<std::string> exact_;
  std::map<std::string, std::shared_ptr<const void>> objects_;
};

/// Collects what a stage finds wrong with its place in the plan.
class PlanCheck {
 public:
  using Report = std::function<void(const std::string& option, const std::string& message)>;
  PlanCheck(Report error, Report warning)
      : error_(std::move(error)), warning_(std::move(warning)) {}
  /// `option` places the message at that key ("" for the node itself).
  void error(const std::string& option, const std::string& message) { error_(option, message); }
  void warning(const std::string& option, const std::string& message) { warning_(option, message); }

 private:
  Report error_, warning_;
};

/// What the admission knows of a source item.
struct SourceInfo {
  std::string_view name;  ///< as in the report; a path
  std::size_t bytes = 0;  ///< size on disk
};

/// The settings behind a run, for a sink to store with its rows.
struct RunSettings {
  Value config;  ///< the whole configuration, every default filled in
};

/// What a sink does where an earlier run left its output.
enum class Update {
  none,    ///< an output is made from nothing
  append,  ///< what is still right stays where it is, what is new comes behind it
  compact  ///< what is still right is taken over, everything in the order of the source
};

/// What the stages of one run share.
struct RunContext {
  BufferPool& pool;
  Ledger& ledger;
  MemoryBudget* budget;  ///< set once the source has its index
  const RunSettings& settings;
  class AnyStage& source;  ///< for what it says of its items
  int workers = 1;
  std::function<void(std::string)> warn;  ///< a remark on the run as a whole
  std::size_t pinned_memory = 0;          ///< that devices may copy to and from [bytes]
  std::size_t device_memory = 0;          ///< of each device [bytes]
  Update update = Update::none;
  int sinks = 1;
  /// That a stage may take of the budget in a filling pass and keep to the end of the run [bytes].
  std::size_t keep_memory = 0;
  /// In a filling pass: nothing more needs to come. From any thread.
  std::function<void()> end_filling = {};
  Facts shared = {};  ///< what stages of one kind have in common; made and asked for in start()
  const std::atomic<bool>* stop_requested = nullptr;  ///< for long work in start(); null: never
  /// Remarks on the plan and, so far, on the run, without places in the configuration's file.
  std::function<std::vector<std::string>()> warnings = [] { return std::vector<std::string>(); };

  [[nodiscard]] bool is_stopping() const { return stop_requested != nullptr && *stop_requested; }
};

/// What a process() call may know and say about the item at hand.
class ItemContext {
 public:
  ItemContext(RunContext& run, const Item& item, int stage)
      : run_(run), item_(item), stage_(stage) {}
  [[nodiscard]] RunContext& run() const { return run_; }
  [[nodiscard]] const Item& item() const { return item_; }
  [[nodiscard]] const Origin& origin(std::size_t part = 0) const { return (*item_.origins)[part]; }
  /// The number of the node, for Stream::fail() outside of this call.
  [[nodiscard]] int stage() const { return stage_; }
  [[nodiscard]] std::unique_ptr<StageState>& state() const {
    return origin().stream->state(stage_);
  }
  /// Fails the stream of one part of a combined item; the other parts go on.
  void fail(std::size_t part, ItemError error) const {
    origin(part).stream->fail(stage_, std::move(error));
  }
  void warn(std::string text, std::size_t part = 0) const {
    origin(part).stream->warn(stage_, std::move(text));
  }

 private:
  RunContext& run_;
  const Item& item_;
  int stage_;
};

/// How a run ended, as the sinks are told.
enum class Ending { complete, stopped, failed };

enum class StageKind { source, transform, combine, sink };

struct PortType {
  std::type_index type = typeid(void);
  const char* name = "";
  friend bool operator==(const PortType& a, const PortType& b) { return a.type == b.type; }
};

struct StageTraits {
  StageKind kind = StageKind::transform;
  PortType in, out;
  /// Blocks of one stream pass one at a time and in order. Off where every block says for itself
  /// which part of its stream it is.
  bool in_order = true;
  /// 0: any.
  int max_concurrency = 0;
  /// Gives several blocks for one input; the further ones have to wait for memory.
  bool expands = false;
  /// What it gives holds something of which there are few (a lane of a device), and the next items
  /// wait inside a stage until a later one has given it back.
  bool lends = false;
};

/// What process() leaves: a payload or nothing, and whether the same input has more to give.
struct Emission {
  std::shared_ptr<const void> payload;
  std::size_t bytes = 0;
  std::size_t rows = 0;
  bool more = false;
};

/// Items under way in the hands of the system (a ring of requests, a device) instead of a thread's.
/// One thread of the scheduler calls begin() and collect().
class Engine {
 public:
  struct Done {
    void* tag = nullptr;
    Result<Emission> result;
  };
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  /// Takes an item without waiting for it. What `context` (which may be copied) refers to stays
  /// until the item is done. Throws as process() does; then there is no Done.
  virtual void begin(void* tag, const Item& item, const ItemContext& context) = 0;
  /// Appends what is done; waits until there is something, or until somebody calls wake(). Does not
  /// throw: an item is done with an error instead.
  virtual void collect(std::vector<Done>& done) = 0;
  /// From any thread; remembered until the next collect() returns.
  virtual void wake() = 0;
};

/// The face that the graph sees; stages derive from the typed templates below.
class AnyStage {
 public:
  AnyStage() = default;
  AnyStage(const AnyStage&) = delete;
  AnyStage& operator=(const AnyStage&) = delete;
  virtual ~AnyStage() = default;

  [[nodiscard]] virtual StageTraits traits() const = 0;

  /// Before the run, from the sinks up: what this stage needs to know from upstream, given what
  /// those below it need.
  [[nodiscard]] virtual Facts demand(const Facts& below) const { return below; }
  /// Then from the source down: checks the stage against what arrives, returns what leaves.
  virtual Facts plan(const Facts& given, const Facts& /*demanded*/, PlanCheck& /*check*/) {
    return given;
  }
  /// After plan(): the settings that can change a value of the output, in the form that is equal
  /// for equal results. Nothing: the options as given, without those that are tuning only.
  [[nodiscard]] virtual std::optional<Value> settings() const { return std::nullopt; }
  /// Upper bound of the bytes one block leaving this stage takes, given the bound of what enters.
  /// Stages keep to it; admission charges the sum over all stages.
  [[nodiscard]] virtual std::size_t output_bound(const SourceInfo& /*source*/,
                                                 std::size_t input_bytes) const {
    return input_bytes;
  }
  /// True: what leaves holds what came in and no other memory of the budget, so that output_bound is
  /// handed on but not charged.
  [[nodiscard]] virtual bool passes_on() const { return false; }
  /// Bytes that it keeps at most beside the items, with `concurrency` of them at a time; they count in
  /// the budget. Asked once the source has its index, before start().
  [[nodiscard]] virtual std::size_t kept_memory(const RunContext& /*run*/,
                                                int /*concurrency*/) const {
    return 0;
  }
  /// True: process() waits for a device, so it runs on `concurrency` threads of its own instead of
  /// holding a worker.
  [[nodiscard]] virtual bool blocking() const { return false; }

  /// How many items are processed at once where the configuration does not say; 0: as many as there
  /// are workers.
  [[nodiscard]] virtual int default_concurrency() const { return 0; }
  /// Not null: items are not processed by run() but begun and collected here, at most `slots` at a
  /// time. Asked once, after the plan is complete.
  [[nodiscard]] virtual std::unique_ptr<Engine> engine(int /*slots*/) { return nullptr; }

  /// After plan(): paths of the files that it will make. No two nodes may make the same one.
  [[nodiscard]] virtual std::vector<std::string> files_made() const { return {}; }

  /// Before the first item; throws RunError when the run cannot start. May close lines of the ledger
  /// (not the source, which comes first): these items are not run.
  virtual void start(RunContext& /*run*/) {}
  /// After start(). True: before the run proper the nodes from the source to this one, between which
  /// there is no branch, run by themselves over all source items, so that this one can keep what the
  /// run proper needs. Nothing of that pass is in the ledger.
  [[nodiscard]] virtual bool fills() const { return false; }
  /// After that pass.
  virtual void filled(RunContext& /*run*/) {}
  /// After the last item, before any stage's finish(): lets go of items that wait here for others.
  /// That closes their lines in the ledger, which tells every listener.
  virtual void drop_waiting() {}
  /// At the end, in graph order. Throws RunError when the output cannot be completed.
  virtual void finish(RunContext& /*run*/, Ending /*ending*/) {}
  /// What a sink made, for the report: name and value.
  [[nodiscard]] virtual std::vector<std::pair<std::string, Value>> summary() const { return {}; }

  /// What of the settings from the source to this stage can change a value of its output: a list,
  /// in the order of the data, of each stage's settings. Set by the graph builder.
  [[nodiscard]] const Value& contract() const { return contract_; }
  void set_contract(Value contract) { contract_ = std::move(contract); }

  // Used by the runner only.
  struct SourceItem {
    std::shared_ptr<const void> payload;
    SourceInfo info;
  };
  [[nodiscard]] virtual std::size_t source_count() const { return 0; }
  [[nodiscard]] virtual SourceItem source_item(std::size_t /*index*/) { return {}; }
  [[nodiscard]] virtual std::string source_name(std::size_t /*index*/) const { return {}; }
  /// Bytes the source keeps in memory for its index; charged to the budget.
  [[nodiscard]] virtual std::size_t source_index_bytes() const { return 0; }
  virtual Result<Emission> run(const Item& item, std::unique_ptr<StageState>& cursor,
                               ItemContext& context) = 0;
  virtual bool add(const Item& /*item*/) { return false; }
  virtual Emission take() { return {}; }

 private:
  Value contract_;
};

// ---- typed kinds ------------------------------------------------------------------------------

template <class T>
PortType port_type() {
  return {typeid(T), T::kName};
}

template <class T>
Emission emission(std::shared_ptr<const T> out, bool more = false) {
  Emission e;
  if (out) {
    e.bytes = out->bytes();
    e.rows = out->rows();
  }
  e.payload = std::move(out);
  e.more = more;
  return e;
}

template <class T>
std::shared_ptr<const T> payload_of(const Item& item) {
  return std::static_pointer_cast<const T>(item.payload);
}

template <class Out>
class Source : public AnyStage {
 public:
  using Output = Out;
  [[nodiscard]] StageTraits traits() const override {
    return {StageKind::source, {}, port_type<Out>(), true, 1};
  }
  Result<Emission> run(const Item&, std::unique_ptr<StageState>&, ItemContext&) final {
    return Emission{};
  }
};

template <class In, class Out>
class Transform : public AnyStage {
 public:
  [[nodiscard]] StageTraits traits() const override {
    return {StageKind::transform, port_type<In>(), port_type<Out>(), true, 0};
  }
  /// Null (without an error) when this block gives nothing; never for the last block of a stream.
  virtual Result<std::shared_ptr<const Out>> process(std::shared_ptr<const In> in,
                                                     ItemContext& context) const = 0;
  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&, ItemContext& context) final {
    auto out = process(payload_of<In>(item), context);
    if (!out) return out.error();
    return emission(std::move(*out));
  }
};

template <class In, class Out, class State>
class StreamTransform : public Transform<In, Out> {
 public:
  /// State of the stream at hand, made with its default constructor at the first block.
  virtual Result<std::shared_ptr<const Out>> process_block(std::shared_ptr<const In> in,
                                                           State& state,
                                                           ItemContext& context) const = 0;
  Result<std::shared_ptr<const Out>> process(std::shared_ptr<const In> in,
                                             ItemContext& context) const final {
    std::unique_ptr<StageState>& slot = context.state();
    if (!slot) slot = std::make_unique<State>();
    auto& state = static_cast<State&>(*slot);
    auto out = process_block(std::move(in), state, context);
    if (context.origin().last) slot.reset();
    return out;
  }
};

/// Cursor: what is left of one input. `next` gives one block and says whether more follow.
template <class In, class Out>
class Expand : public AnyStage {
 public:
  struct Block {
    std::shared_ptr<const Out> out;
    bool more = false;
  };
  class Cursor : public StageState {
   public:
    virtual Result<Block> next(ItemContext& context) = 0;
  };
  [[nodiscard]] StageTraits traits() const override {
    return {StageKind::transform, port_type<In>(), port_type<Out>(), true, 0, true};
  }
  virtual Result<std::unique_ptr<Cursor>> open(std::shared_ptr<const In> in,
                                               ItemContext& context) const = 0;
  Result<Emission> run(const Item& item, std::unique_ptr<StageState>& cursor,
                       ItemContext& context) final {
    if (!cursor) {
      auto opened = open(payload_of<In>(item), context);
      if (!opened) return opened.error();
      cursor = std::move(*opened);
    }
    auto block = static_cast<Cursor&>(*cursor).next(context);
    if (!block) return block.error();
    return emission(std::move(block->out), block->more);
  }
};

/// Runs one at a time. The origins of everything added go with what take() gives, in that order.
template <class In, class Out>
class Combine : public AnyStage {
 public:
  [[nodiscard]] StageTraits traits() const override {
    return {StageKind::combine, port_type<In>(), port_type<Out>(), true, 1};
  }
  /// True when it is full and should be taken.
  virtual bool push(std::shared_ptr<const In> in) = 0;
  virtual std::shared_ptr<const Out> pull() = 0;

  bool add(const Item& item) final { return push(payload_of<In>(item)); }
  Emission take() final { return emission(pull()); }
  Result<Emission> run(const Item&, std::unique_ptr<StageState>&, ItemContext&) final {
    return Emission{};
  }
};

template <class In>
class Sink : public AnyStage {
 public:
  [[nodiscard]] StageTraits traits() const override {
    return {StageKind::sink, port_type<In>(), {}, false, 0};
  }
  /// The item (with its origins) may be kept: its memory stays charged until it is let go, which
  /// has to be by the end of drop_waiting(), by a process() call or a listener of the ledger, and
  /// without holding a lock that such a listener takes: it may close the item's line.
  virtual std::optional<ItemError> consume(std::shared_ptr<const In> in, ItemContext& context) = 0;
  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&, ItemContext& context) final {
    if (auto error = consume(payload_of<In>(item), context)) return std::move(*error);
    return Emission{};
  }
};

}  // namespace melflow
