// normalize: scales columns to mean 0 and standard deviation 1, by an earlier output's statistics.
//
// In:  MelBatch.
// Out: MelBatch, (x - mean) / std; a column that never changed is only shifted by its mean.

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/features/row_stage.h"
#include "stages/files/files_read.h"
#include "stages/output/formats/feature_file.h"

namespace melflow {
namespace {

struct NormalizeOptions {
  std::string file;

  void describe(Schema& s) {
    s.field(
         "file", file,
         "path of an earlier output whose mean and standard deviation scale the columns; it must "
         "have been written with statistics: train or all and without normalize: true; required")
        .tuning();  // its content is among the feature settings
  }
};

class Normalize final : public RowStage {
 public:
  explicit Normalize(NormalizeOptions options) : options_(std::move(options)) {}

  void start(RunContext& run) override {
    RowStage::start(run);
    note_file_read(run, options_.file);
  }
  [[nodiscard]] std::optional<Value> settings() const override {
    Value out = Value::map({});
    out.set("of", Value::scalar(statistics_.of, {}, true));
    out.set("statistics", Value::scalar(hash(), {}, true));
    return out;
  }

 protected:
  std::shared_ptr<const FinishStep> make_step(const FeatureInfo& in, FeatureInfo& out,
                                              PlanCheck& check) override {
    if (options_.file.empty()) {
      check.error("", "'file' is missing; write file: OUTPUT, whose statistics are used");
      return nullptr;
    }
    try {
      const FeatureFile file(options_.file);
      if (!file.statistics()) {
        check.error("file", options_.file +
                                " has no statistics; make it with statistics: train on its sink");
        return nullptr;
      }
      statistics_ = *file.statistics();
      if (file.unit() != in.unit)
        check.error("file", fmt::format("{} has values in {}, what arrives is in {}", options_.file,
                                        file.unit(), in.unit));
    } catch (const RunError& e) {
      check.error("file", e.what());
      return nullptr;
    }
    if (statistics_.is_applied) {
      check.error("file", options_.file +
                              " is normalised already, and its statistics are those from before; "
                              "rows that are made like its own need normalize: true on the sink");
      return nullptr;
    }
    if (statistics_.mean.size() != static_cast<std::size_t>(in.columns)) {
      check.error("file", fmt::format("{} has {} columns, what arrives has {}", options_.file,
                                      statistics_.mean.size(), in.columns));
      return nullptr;
    }
    const auto is_usable = [](const std::vector<double>& values) {
      return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
    };
    if (!is_usable(statistics_.mean) || !is_usable(statistics_.std)) {
      check.error("file", options_.file +
                              " has means or standard deviations that are not numbers: some of its "
                              "rows are not finite; rebuild it");
      return nullptr;
    }
    out.unit = "standard deviations of " + in.unit;
    std::vector<double> std = statistics_.std;
    for (double& s : std)
      if (s == 0) s = 1;
    return fixed_step(statistics_.mean, std);
  }

 private:
  [[nodiscard]] std::string hash() const {
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    for (const std::vector<double>* values : {&statistics_.mean, &statistics_.std})
      XXH3_128bits_update(&state, values->data(), values->size() * sizeof(double));
    const XXH128_hash_t h = XXH3_128bits_digest(&state);
    return fmt::format("{:016x}{:016x}", h.high64, h.low64);
  }

  NormalizeOptions options_;
  ColumnStatistics statistics_;
};

const RegisterStage<Normalize, NormalizeOptions> register_normalize{
    "normalize", "Scales columns by the mean and standard deviation of an earlier output.", true};

}  // namespace
}  // namespace melflow
