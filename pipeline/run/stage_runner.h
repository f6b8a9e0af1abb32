// One stage run on its own: no graph, no threads of its own. Made from the registry as a plan makes
// it, for tests; or a plan's.
//
//   StageRunner runner("loudness", {{"min_db", -40}});
//   const auto result = runner.stream<Waveform>(waveform(samples, 16000, 4096));
//   result.ok(), result.blocks, result.entry.reason
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/options/option_list.h"
#include "pipeline/plan/plan.h"

namespace melflow {

/// The result of Stage::plan() for one stage.
struct Planned {
  Properties properties;              ///< of what leaves it
  std::vector<std::string> errors;    ///< "option: message"
  std::vector<std::string> warnings;  ///< likewise
};

/// The result of one stream in one stage.
template <class Out>
struct Streamed {
  std::vector<std::shared_ptr<const Out>> blocks;
  Ledger::Entry entry;  ///< ok with `reason` as the warning, or skipped or failed with the reason

  [[nodiscard]] bool ok() const { return entry.outcome == Outcome::ok; }
};

class StageRunner {
 public:
  /// Throws std::runtime_error when there is no such stage, ConfigError with every problem of the
  /// options, which are a map.
  explicit StageRunner(const std::string& stage, const Value& options);
  explicit StageRunner(const std::string& stage, const OptionList& options = {})
      : StageRunner(stage, map_of(options)) {}
  /// Takes over a stage of a plan, where Stage::plan() was called already.
  explicit StageRunner(PlanNode&& node);
  StageRunner(const StageRunner&) = delete;
  StageRunner& operator=(const StageRunner&) = delete;
  ~StageRunner();

  [[nodiscard]] Stage& stage() { return *stage_; }
  /// The stage as its kind, which must be the one asked for.
  [[nodiscard]] ItemStage& items() const { return *faces_.items; }
  [[nodiscard]] SourceStage& source() const { return *faces_.source; }
  /// For Stage::start() and finish(), which a test calls where its stage has them.
  [[nodiscard]] RunContext& run() { return run_; }
  [[nodiscard]] Ledger& ledger() { return ledger_; }
  /// The memory that stages lease from: allocations() no longer grows in the steady state of a
  /// stage that uses its scratch memory again; leased() is 0 when all outputs are gone.
  [[nodiscard]] const BufferPool& pool() const { return pool_; }
  /// Warnings about the run as a whole.
  [[nodiscard]] const std::vector<std::string>& run_warnings() const { return run_warnings_; }

  /// Calls Stage::plan(), with the properties of the input and the requirements of later stages.
  Planned plan(const Properties& given = {}, const Requirements& required = {});

  /// A stream on its way through the stage; from one thread at a time.
  class Pass {
   public:
    explicit Pass(StageRunner& runner);
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass();

    /// Gets each payload that the stage gives; `is_last`: of the stream. Returns false if no more
    /// is wanted.
    using Give = std::function<bool(std::shared_ptr<const void>, bool is_last)>;
    /// Hands a payload to the stage. False: the stream has failed, or no more is wanted.
    bool put(std::shared_ptr<const void> payload, bool is_last, const Give& give);
    /// What became of the stream; once.
    Ledger::Entry end();

   private:
    StageRunner& runner_;
    Ledger ledger_;  // one for each stream, so that several can run at once
    std::unique_ptr<Engine> engine_;
    std::shared_ptr<Stream> stream_;
    std::uint64_t block_ = 0;  // number of the next one
  };

  /// Hands the payloads `in` of one stream to the stage, in order, until the stream is over; from
  /// one thread at a time. `out` gets the stage's payloads; returns what became of the stream.
  Ledger::Entry pass(const std::vector<std::shared_ptr<const void>>& in,
                     std::vector<std::shared_ptr<const void>>& out);

  /// Hands the blocks of one stream to the stage, in order, until it is over. From any number of
  /// threads at once, each with a stream of its own; item stages only.
  template <class Out, class In>
  Streamed<Out> stream(const std::vector<std::shared_ptr<const In>>& blocks) {
    Streamed<Out> result;
    std::vector<std::shared_ptr<const void>> in(blocks.begin(), blocks.end()), out;
    result.entry = pass(in, out);
    for (auto& block : out) result.blocks.push_back(std::static_pointer_cast<const Out>(block));
    return result;
  }
  /// A stream of one block.
  template <class Out, class In>
  Streamed<Out> single(std::shared_ptr<const In> whole) {
    return stream<Out, In>({std::move(whole)});
  }

  /// Streams that are under way at the same time: one thread for each, every thread's first block
  /// is handed over when all threads are there. Results in the order of the streams.
  template <class Out, class In>
  std::vector<Streamed<Out>> at_once(
      const std::vector<std::vector<std::shared_ptr<const In>>>& streams) {
    std::vector<Streamed<Out>> results(streams.size());
    on_threads(streams.size(), [&](std::size_t i) { results[i] = stream<Out, In>(streams[i]); });
    return results;
  }

 private:
  StageRunner(std::unique_ptr<StageConfig> config, std::unique_ptr<Stage> stage);
  static void on_threads(std::size_t count, const std::function<void(std::size_t)>& work);

  std::unique_ptr<StageConfig> config_;
  std::unique_ptr<Stage> stage_;
  StageFaces faces_;
  std::unique_ptr<SourceStage> no_source_;
  RunServices services_;
  BufferPool pool_;
  Ledger ledger_;
  RunSettings settings_;
  std::vector<std::string> run_warnings_;
  RunContext run_;
};

}  // namespace melflow
