// The rows of samples that are in memory: the stages of a pipeline behind the decoder, one after the
// other. What they give is what the pipeline writes for a file of these samples.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "config/load.h"
#include "pipeline/stage_runner.h"
#include "stages/items.h"

namespace melflow {

class FeatureChain {
 public:
  /// Of the pipeline in `text`, called `name` in messages, or of the file `name` where `text` is
  /// empty. It has one way from a decoder to one output. Throws ConfigError, RunError.
  FeatureChain(const std::string& name, const std::string& text, const LoadOptions& options);
  FeatureChain(const FeatureChain&) = delete;
  FeatureChain& operator=(const FeatureChain&) = delete;

  /// The rows of one recording. From any thread. Throws RunError where the stages refuse it, saying
  /// why.
  [[nodiscard]] std::shared_ptr<const MelPart> rows(const Samples& samples, int sample_rate) const;

  [[nodiscard]] const FeatureInfo& info() const { return *info_; }
  /// Of what is written from such rows.
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }

 private:
  struct Step {
    std::string name;
    std::unique_ptr<StageRunner> stage;  ///< none: it collects recordings for the next
  };
  std::vector<Step> steps_;
  std::shared_ptr<const FeatureInfo> info_;
  std::string fingerprint_;
};

}  // namespace melflow
