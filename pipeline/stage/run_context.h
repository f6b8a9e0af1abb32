// The context in which a stage runs: the run, and the current item.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include "pipeline/base/memory.h"
#include "pipeline/base/result.h"
#include "pipeline/base/value.h"
#include "pipeline/stage/item.h"

namespace melflow {

class SourceStage;

/// Settings that are fixed before the run begins.
struct RunSettings {
  Value config;                   ///< the whole configuration, every default filled in
  std::string file;               ///< the configuration file; "" if there is none
  std::size_t host_memory = 0;    ///< budget of the run, memory.host [bytes]
  std::size_t pinned_memory = 0;  ///< limit of page-locked memory [bytes]
  std::size_t device_memory = 0;  ///< limit of memory on each device [bytes]
  int sinks = 1;                  ///< number of sinks in the graph
  bool is_part = false;           ///< of a larger run: complete even if no item is ok
};

/// Objects that stages share, or get from the caller of the run: one per type. The framework only
/// keeps them. Not locked: only for use before the run and in Stage::start().
class RunServices {
 public:
  template <class T>
  void add(std::shared_ptr<T> service) {
    services_[typeid(T)] = std::move(service);
  }
  /// Returns the object of this type; null if there is none.
  template <class T>
  [[nodiscard]] std::shared_ptr<T> find() const {
    const auto it = services_.find(typeid(T));
    return it == services_.end() ? nullptr : std::static_pointer_cast<T>(it->second);
  }
  /// Returns the object of this type; makes it from `arguments` if there is none yet.
  template <class T, class... Arguments>
  std::shared_ptr<T> find_or_make(Arguments&&... arguments) {
    if (auto service = find<T>()) return service;
    auto service = std::make_shared<T>(std::forward<Arguments>(arguments)...);
    add(service);
    return service;
  }

 private:
  std::map<std::type_index, std::shared_ptr<void>> services_;
};

/// A run, as its stages see it.
/// Threads: pool, ledger, budget, warn() and is_stopping() any; services before the run and in
/// Stage::start(). Lifetime: from the first Stage::start() to the last Stage::finish().
struct RunContext {
  BufferPool& pool;
  Ledger& ledger;
  const RunSettings& settings;
  SourceStage& source;  ///< for the names and sizes of its items
  RunServices& services;
  MemoryBudget* budget = nullptr;  ///< set once the source has its index
  int workers = 1;
  std::function<void(std::string)> warn;  ///< adds a warning about the run as a whole
  /// Returns warnings about the plan and the run so far, without positions in the configuration.
  std::function<std::vector<std::string>()> warnings = [] { return std::vector<std::string>(); };
  const std::atomic<bool>* stop_requested = nullptr;  ///< for long work in start(); may be null

  [[nodiscard]] bool is_stopping() const { return stop_requested != nullptr && *stop_requested; }
};

/// The output of a stage that splits by one of its outputs; without a payload: none.
struct Leaving {
  std::shared_ptr<const void> payload;
  std::size_t bytes = 0, rows = 0;
};

/// Tells a process() call about its item, and takes its reports about it.
/// Threads: that of the call. Lifetime: the call; for Engine::begin(), until the item is done.
class ItemContext {
 public:
  ItemContext(RunContext& run, const Item& item, int stage, std::size_t input = 0,
              std::uint64_t given = 0)
      : run_(run), item_(item), stage_(stage), input_(input), given_(given) {}
  [[nodiscard]] RunContext& run() const { return run_; }
  [[nodiscard]] const Item& item() const { return item_; }
  [[nodiscard]] const Origin& origin(std::size_t part = 0) const { return (*item_.origins)[part]; }
  /// For a stage that pairs: the number of the input that the item came by.
  [[nodiscard]] std::size_t input() const { return input_; }
  /// The number of the node, for Stream::fail() outside this call.
  [[nodiscard]] int stage() const { return stage_; }
  /// For a stage that splits: gets what leaves by each of its outputs, in their order, in place of
  /// the result of its call; without a payload where the item does not leave by one.
  [[nodiscard]] std::vector<Leaving>& outputs() const { return *outputs_; }
  void set_outputs(std::vector<Leaving>& outputs) { outputs_ = &outputs; }
  [[nodiscard]] std::unique_ptr<StageState>& state() const {
    return origin().stream->state(stage_);
  }
  /// Fails the stream of one part of a combined item; other parts are not affected.
  void fail(std::size_t part, ItemError error) const {
    origin(part).stream->fail(stage_, std::move(error), block(part));
  }
  /// Whether nothing made of that part of the item counts, so that it need not be processed.
  [[nodiscard]] bool is_lost(std::size_t part) const {
    return origin(part).stream->is_lost_to(stage_, block(part));
  }
  /// Sends the item to one output only, or to none if `output` is -1; `why` is for the sinks that
  /// do not get it.
  void route(int output, ItemError why) const {
    const std::span<const int> outputs(&output, output < 0 ? 0 : 1);
    origin().stream->route(stage_, outputs, std::move(why), block(0));
  }
  /// Keeps only `bytes` of memory for that part of the item: returns the rest of its reservation,
  /// unless others share it. Call it without a lock, before the stage copies the part's origin.
  void keep_only(std::size_t part, std::size_t bytes) const {
    const std::shared_ptr<const Reservation>& held = origin(part).reservation;
    if (item_.origins.use_count() == 1 && held.use_count() == 1) held->shrink(bytes);
  }
  void warn(std::string text, std::size_t part = 0) const {
    origin(part).stream->warn(stage_, std::move(text), block(part));
  }

 private:
  [[nodiscard]] std::uint64_t block(std::size_t part) const { return origin(part).block + given_; }

  RunContext& run_;
  const Item& item_;
  int stage_;
  std::size_t input_;
  std::vector<Leaving>* outputs_ = nullptr;
  std::uint64_t given_;  // payloads already emitted for this item, in units of Origin::block
};

/// How a run ended, for Stage::finish().
enum class Ending { complete, stopped, failed };

}  // namespace melflow
