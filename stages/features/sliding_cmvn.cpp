// sliding_cmvn: cepstral mean and variance normalisation (CMVN) over a sliding window.
//
// In:  MelBatch.
// Out: MelBatch of the same shape.

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/features/mel/sliding_step.h"
#include "stages/features/row_stage.h"
#include "stages/other_names.h"
#include "stages/settings_in_use.h"

namespace melflow {
namespace {

struct SlidingCmvnOptions {
  SlidingOptions sliding;

  void describe(Schema& s) {
    s.other_names(other_names::of_sliding_cmvn());
    s.field("window", sliding.window,
            "number of frames whose mean is subtracted from a frame [frames]; longer: the mean "
            "adapts more slowly")
        .range(1, 1 << 20);
    s.field("center", sliding.center,
            "place of the window; true: around the frame, moved inwards at the ends of the "
            "recording or segment; false: the frame and the window frames before it (Kaldi)");
    s.field("min_window", sliding.min_window,
            "number of frames from the start of the recording or segment on that the window of an "
            "early frame has at least [frames], at most window")
        .range(1, 1 << 20)
        .used_with("center: false", [this] { return !sliding.center; });
    s.field("norm_variance", sliding.variance,
            "whether the difference is divided by the standard deviation over the window; false: "
            "only the mean is subtracted");
  }
};

class SlidingCmvn final : public RowStage {
 public:
  explicit SlidingCmvn(SlidingCmvnOptions options) : o_(options.sliding) {}

  [[nodiscard]] std::optional<Value> settings() const override {
    return settings_in_use(SlidingCmvnOptions{o_});
  }

 protected:
  std::shared_ptr<const FinishStep> make_step(const FeatureInfo& in, FeatureInfo& out,
                                              PlanCheck& check) override {
    if (in.is_samples()) {
      check.error("", "needs rows of features, what arrives are samples");
      return nullptr;
    }
    if (!o_.center && o_.min_window > o_.window) {
      check.error("min_window",
                  fmt::format("is {} but must be at most window ({})", o_.min_window, o_.window));
      return nullptr;
    }
    // The rows of a window are held for each recording at work, and the budget lacks them.
    const double held = (o_.window + 1.0) * in.columns * sizeof(float);
    constexpr double kMost = 256 << 20;
    if (held > kMost) {
      check.error("window",
                  fmt::format("is {} but must be at most {} for rows of {} columns", o_.window,
                              static_cast<int>(o_.window * kMost / held) - 1, in.columns));
      return nullptr;
    }
    out.unit = o_.variance ? "standard deviations of " + in.unit : in.unit + ", normalized";
    return sliding_step(o_);
  }

 private:
  SlidingOptions o_;
};

const RegisterStage<SlidingCmvn, SlidingCmvnOptions> register_sliding_cmvn{
    "sliding_cmvn", "Subtracts from each frame the mean of the frames around it (sliding CMVN).",
    true};

}  // namespace
}  // namespace melflow
