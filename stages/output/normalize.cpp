// normalize: scales columns to mean 0 and standard deviation 1, by the statistics in an earlier
// output, of all rows or of each speaker's.
//
// In:  MelBatch.
// Out: MelBatch, (x - mean) / std; a column that never changed is only shifted by its mean.

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/text.h"
#include "pipeline/stage/registry.h"
#include "stages/features/row_stage.h"
#include "stages/files/files_read.h"
#include "stages/output/formats/feature_file.h"
#include "stages/recording_groups.h"

namespace melflow {
namespace {

struct NormalizeOptions {
  std::string file, by;

  void describe(Schema& s) {
    s.field(
         "file", file,
         "path of an earlier output whose mean and standard deviation scale the columns; it must "
         "have been written with statistics: train or all and without normalize: true; required")
        .tuning();  // its content is among the feature settings
    s.field("by", by,
            "column of the list, or label or split: scales the rows of each speaker, or what else "
            "it names, by its statistics in file (statistics_by). Recordings "
            "without a text: by those of all; a text that file lacks fails")
        .tuning();
  }
};

class Normalize final : public RowStage {
 public:
  explicit Normalize(NormalizeOptions options) : options_(std::move(options)) {}

  void start(RunContext& run) override {
    RowStage::start(run);
    note_file_read(run, options_.file);
    if (options_.by.empty()) return;
    groups_.emplace(listed_texts(run, options_.by, "normalize.by"));
    number_of_.clear();
    for (const std::string_view name : groups_->names())
      number_of_.push_back(statistics_.groups->find(name));
  }
  [[nodiscard]] std::string why_no_stream() const override {
    return options_.by.empty()
               ? ""
               : "by: samples that come as they are recorded have no " + options_.by;
  }
  [[nodiscard]] std::optional<Value> settings() const override {
    Value out = Value::map({});
    out.set("of", Value::scalar(statistics_.of, {}, true));
    if (!options_.by.empty()) out.set("by", Value::scalar(options_.by, {}, true));
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
    auto& groups = statistics_.groups;
    if (options_.by.empty()) groups.reset();
    if (!options_.by.empty() && (!groups || groups->by != options_.by)) {
      check.error("by",
                  fmt::format("{} has no statistics by {}{}; make it with statistics_by: {} on "
                              "its sink",
                              options_.file, options_.by, groups ? ", but by " + groups->by : "",
                              options_.by));
      return nullptr;
    }
    for (const std::vector<double>* values : all_values())
      if (!std::all_of(values->begin(), values->end(), [](double v) { return std::isfinite(v); })) {
        check.error("file",
                    options_.file +
                        " has means or standard deviations that are not numbers: some of its "
                        "rows are not finite; rebuild it");
        return nullptr;
      }
    out.unit = "standard deviations of " + in.unit;
    return scaling_step(statistics_);
  }

  [[nodiscard]] Result<std::shared_ptr<const FinishStep>> step_for(
      std::size_t recording) const override {
    if (!groups_ || groups_->of(recording) < 0) return RowStage::step_for(recording);
    const auto group = static_cast<std::size_t>(groups_->of(recording));
    if (number_of_[group] >= 0) return scaling_step(statistics_, number_of_[group]);
    return ItemError::failed(fmt::format("{} has no statistics of the {} '{}'", options_.file,
                                         options_.by, excerpt(groups_->names()[group])));
  }

 private:
  [[nodiscard]] std::vector<const std::vector<double>*> all_values() const {
    std::vector out{&statistics_.mean, &statistics_.std};
    if (statistics_.groups)
      out.insert(out.end(), {&statistics_.groups->mean, &statistics_.groups->std});
    return out;
  }
  [[nodiscard]] std::string hash() const {
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    for (const std::vector<double>* values : all_values())
      XXH3_128bits_update(&state, values->data(), values->size() * sizeof(double));
    if (statistics_.groups)
      for (const std::string& name : statistics_.groups->names)
        XXH3_128bits_update(&state, name.c_str(), name.size() + 1);
    const XXH128_hash_t h = XXH3_128bits_digest(&state);
    return fmt::format("{:016x}{:016x}", h.high64, h.low64);
  }

  NormalizeOptions options_;
  ColumnStatistics statistics_;
  std::optional<RecordingGroups> groups_;  // of this run, with `by`
  std::vector<std::int64_t> number_of_;    // of each of them in statistics_; -1: none
};

const RegisterStage<Normalize, NormalizeOptions> register_normalize{
    "normalize", "Scales columns by the mean and standard deviation of an earlier output.", true};

}  // namespace
}  // namespace melflow
