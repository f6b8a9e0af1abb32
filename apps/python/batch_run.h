// One pass over a corpus, on dedicated threads, for a program that takes its batches.
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
#include "stages/output/training/batch_source.h"
#include "stages/output/training/sample_batch.h"

namespace melflow {

/// The list of a corpus.
struct Listing {
  std::vector<std::string> label_names, split_names, target_names;
  std::size_t recordings = 0;
  std::uint64_t hash = 0;  ///< of their names and splits, in the order of the list
};

class BatchRun final : public EndsWithPython {
 public:
  struct Settings {
    std::string pipeline;  ///< a path
    std::string text;      ///< or the configuration itself
    std::vector<Assignment> vars, sets;
    std::map<std::string, std::string>
        options;  ///< of the node that gives batches, by the arguments of Loader
    std::optional<int> workers;
    std::uint64_t epoch = 0, skip = 0;
    std::optional<std::uint64_t> order;  ///< seed of the order of recordings; not set: as listed
    std::shared_ptr<BufferPool> pool;    ///< of batches, for passes that follow each other
    std::string split;                   ///< "": all
    std::size_t rank = 0, ranks = 1;
  };
  /// Begins. Throws ConfigError, and RunError where the process was forked since the first pass.
  explicit BatchRun(const Settings& settings);
  struct Checked {
    bool has_buckets = false;           ///< of the node that gives batches
    std::vector<std::string> warnings;  ///< of the plan
  };
  /// Whether one could begin: throws what the constructor would throw.
  static Checked check(const Settings& settings);
  /// Lists the corpus. Throws ConfigError, RunError.
  static Listing list(const Settings& settings);
  /// Breaks the pass off.
  ~BatchRun();

  /// Waits for a batch, so long at most [s]. Throws RunError where the run failed, after its last
  /// batch.
  BatchQueue::State take(SampleBatch& out, double seconds);
  /// Breaks the pass off and waits until it has ended.
  void stop() override;

  /// The list of recordings; valid once there was a batch.
  [[nodiscard]] const Manifest& manifest() const { return *manifest_; }
  [[nodiscard]] Listing listing() const;
  /// Of what a batch has of every sample, in the order of a SampleBatch.
  [[nodiscard]] const std::vector<BatchInput>& inputs() const { return inputs_; }
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }
  /// After the last batch.
  [[nodiscard]] const RunReport& report() const { return report_; }
  /// What batches said of the pass since the last call.
  [[nodiscard]] std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }
  [[nodiscard]] const Plan& plan() const { return runner_->plan(); }
  [[nodiscard]] std::vector<Remark> remarks() const { return runner_->remarks(); }

 private:
  void run();
  void join();

  std::shared_ptr<BatchQueue> queue_;
  std::unique_ptr<Runner> runner_;
  const Manifest* manifest_ = nullptr;
  std::vector<BatchInput> inputs_;
  std::string fingerprint_;
  RunReport report_;
  std::string error_;
  std::vector<std::string> warnings_;
  std::mutex joining_;  // who takes batches and who stops them may be two
  std::thread thread_;
};

}  // namespace melflow
