// One stage, made from the registry as a plan makes it, and run on its own: no graph, no threads of
// its own. stream() may be called from several threads.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/registry.h"
#include "stages/items.h"

namespace melflow::test {

/// What the plan's check of one stage gave.
struct Planned {
  Properties properties;              ///< of what leaves it
  std::vector<std::string> errors;    ///< "option: message"
  std::vector<std::string> warnings;  ///< likewise
};

/// What became of one stream in one stage.
template <class Out>
struct Streamed {
  std::vector<std::shared_ptr<const Out>> blocks;
  Ledger::Entry entry;  ///< ok with `reason` as the remark, or skipped or failed with the reason

  [[nodiscard]] bool ok() const { return entry.outcome == Outcome::ok; }
};

class Bench {
 public:
  /// `options` is a YAML map: "{rate: 16000}". Throws ConfigError when the options are wrong.
  explicit Bench(const std::string& stage, const std::string& options = "{}");
  ~Bench();

  [[nodiscard]] Stage& stage() { return *stage_; }
  /// The same as what its kind is; it has to be that.
  [[nodiscard]] ItemStage& items() const { return *faces_.items; }
  [[nodiscard]] SourceStage& source() const { return *faces_.source; }
  [[nodiscard]] RunContext& run() { return run_; }
  [[nodiscard]] Ledger& ledger() { return ledger_; }
  /// Remarks on the run as a whole.
  [[nodiscard]] const std::vector<std::string>& run_warnings() const { return run_warnings_; }

  Planned plan(const Properties& given = {}, const Requirements& required = {});

  /// Hands the blocks of one stream to the stage, in order, until it is over.
  template <class Out, class In>
  Streamed<Out> stream(const std::vector<std::shared_ptr<const In>>& blocks) {
    Streamed<Out> result;
    std::vector<std::shared_ptr<const void>> in(blocks.begin(), blocks.end()), out;
    result.entry = pass(in, out);
    for (auto& block : out) result.blocks.push_back(std::static_pointer_cast<const Out>(block));
    return result;
  }
  template <class Out, class In>
  Streamed<Out> single(std::shared_ptr<const In> whole) {
    return stream<Out, In>({std::move(whole)});
  }

 private:
  Ledger::Entry pass(const std::vector<std::shared_ptr<const void>>& in,
                     std::vector<std::shared_ptr<const void>>& out);

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

/// A stream of samples in blocks of `block` samples (0: in one).
template <class Sample>
std::vector<std::shared_ptr<const Waveform>> waveform(const std::vector<Sample>& samples,
                                                      int sample_rate, std::int64_t block = 0);

/// Samples of all blocks, as they are stored; the blocks have to follow each other without a gap.
template <class Sample>
std::vector<Sample> joined(const std::vector<std::shared_ptr<const Waveform>>& blocks);

/// The buffer that owns samples which are not in a store or a file's bytes.
inline const Buffer& buffer_of(const Samples& samples) {
  return *static_cast<const Buffer*>(samples.owner.get());
}

}  // namespace melflow::test
