// One pass over a corpus, on dedicated threads, for a program that takes the batches.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/python/process.h"
#include "config/load.h"
#include "pipeline/run/runner.h"
#include "stages/manifest.h"
#include "stages/training/batch_queue.h"
#include "stages/training/batch_source.h"
#include "stages/training/sample_batch.h"

namespace melflow {

/// The list of a corpus.
struct Listing {
  std::vector<std::string> label_names, split_names, target_names;
  std::size_t recordings = 0;
  std::uint64_t hash = 0;  ///< of the recordings' names and splits, in the order of the list
};

class BatchRun final : public EndsWithPython {
 public:
  struct Settings {
    std::string pipeline;  ///< a path
    std::string text;      ///< or the configuration as text
    std::vector<Assignment> vars, sets;
    std::map<std::string, std::string>
        options;  ///< of the stage `batches`, from the arguments of Loader
    std::optional<int> workers;
    std::uint64_t epoch = 0, skip = 0;
    std::optional<std::uint64_t> order;  ///< seed of the recordings' order; not set: as listed
    std::shared_ptr<BufferPool> pool;    ///< of batches, shared by consecutive passes
    std::string split;                   ///< "": all
    std::size_t rank = 0, ranks = 1;
  };
  /// Begins the pass. Throws ConfigError, or RunError in a process forked since the first pass.
  explicit BatchRun(const Settings& settings);
  struct Checked {
    bool has_buckets = false;           ///< whether the stage `batches` has them
    std::vector<std::string> warnings;  ///< of the plan
  };
  /// Checks whether a pass could begin; throws the constructor's exceptions.
  static Checked check(const Settings& settings);
  /// Lists the corpus. Throws ConfigError, RunError.
  static Listing list(const Settings& settings);
  /// Cancels the pass.
  ~BatchRun();

  /// Waits for a batch, at most `seconds`. Throws RunError where the run failed, after its last
  /// batch.
  TakeResult take(SampleBatch& out, double seconds);
  /// Cancels the pass and waits until it has ended.
  void stop() override;

  /// The list of recordings; valid after the first batch.
  [[nodiscard]] const Manifest& manifest() const { return *manifest_; }
  [[nodiscard]] Listing listing() const;
  /// The inputs that a batch has for every sample, in the order of a SampleBatch.
  [[nodiscard]] const std::vector<BatchInput>& inputs() const { return inputs_; }
  /// The nodes that make several results of a recording.
  [[nodiscard]] const std::vector<std::string>& dividers() const { return dividers_; }
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }
  /// The report; valid after the last batch.
  [[nodiscard]] const RunReport& report() const { return report_; }
  /// Returns the warnings about the pass since the last call.
  [[nodiscard]] std::vector<std::string> take_warnings() { return queue_->take_warnings(); }
  [[nodiscard]] const Plan& plan() const { return runner_->plan(); }
  [[nodiscard]] Remarks remarks() const { return runner_->remarks(); }

 private:
  void run();
  void join();

  std::shared_ptr<BatchQueue<SampleBatch>> queue_;
  std::unique_ptr<Runner> runner_;
  const Manifest* manifest_ = nullptr;
  std::vector<BatchInput> inputs_;
  std::vector<std::string> dividers_;
  std::string fingerprint_;
  RunReport report_;
  std::string error_;
  std::mutex joining_;  // one thread may take batches while another stops the run
  std::thread thread_;
};

}  // namespace melflow
