// deltas: appends time derivatives to features.
//
// In:  MelBatch.
// Out: MelBatch with order + 1 times as many values a frame.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/stage/registry.h"
#include "stages/features/mel/delta_step.h"
#include "stages/features/row_stage.h"
#include "stages/other_names.h"

namespace melflow {

template <>
struct EnumNames<DeltaOptions::Method> {
  static constexpr std::pair<const char*, DeltaOptions::Method> values[] = {
      {"regression", DeltaOptions::Method::regression},
      {"kaldi", DeltaOptions::Method::kaldi},
      {"librosa", DeltaOptions::Method::librosa}};
};

namespace {

struct DeltaStageOptions {
  DeltaOptions delta;

  void describe(Schema& s) {
    s.other_names(other_names::of_deltas());
    s.field("order", delta.order,
            "highest time derivative that is appended; 2: first and second derivatives")
        .range(1, 4);
    s.field("width", delta.width,
            "number of frames over which a derivative is taken [frames], odd; larger: smoother")
        .range(3, 999);
    s.field(
        "method", delta.method,
        "how derivatives are taken; regression: slope of a line through the frames, of slopes for "
        "higher orders (torchaudio, HTK); kaldi: the same, higher orders by one filter "
        "(add-deltas); librosa: of a polynomial of degree order fitted to width frames");
  }
};

class Deltas final : public RowStage {
 public:
  explicit Deltas(DeltaStageOptions options) : o_(options.delta) {}

  // The first derivative is the same with method kaldi, so it is written the same way.
  [[nodiscard]] std::optional<Value> settings() const override {
    DeltaStageOptions own{o_};
    if (o_.order == 1 && o_.method == DeltaOptions::Method::kaldi)
      own.delta.method = DeltaOptions::Method::regression;
    Schema s;
    own.describe(s);
    return s.echo();
  }

 protected:
  std::shared_ptr<const FinishStep> make_step(const FeatureInfo& in, FeatureInfo& out,
                                              PlanCheck& check) override {
    if (in.is_samples()) {
      check.error("", "needs rows of features, what arrives are samples");
      return nullptr;
    }
    if (o_.width % 2 == 0) {
      check.error("width", fmt::format("is {} but must be odd: {} or {}", o_.width, o_.width - 1,
                                       o_.width + 1));
      return nullptr;
    }
    if (o_.method == DeltaOptions::Method::librosa && o_.width <= o_.order) {
      check.error("width",
                  fmt::format("is {} but must be more than order ({})", o_.width, o_.order));
      return nullptr;
    }
    // A piece and the rows around it, for every order: kept small, as the budget lacks them.
    const double held = 3.0 * o_.order * o_.width * in.columns * (o_.order + 2) * sizeof(float);
    constexpr double kMost = 256 << 20;
    if (held > kMost) {
      check.error(
          "width",
          fmt::format("is {} but must be at most {} for rows of {} columns", o_.width,
                      std::max(3, static_cast<int>(o_.width * kMost / held)) | 1, in.columns));
      return nullptr;
    }
    out.axis = "feature";
    out.column_hz.clear();
    out.unit = in.unit + ", with derivatives";
    return delta_step(o_);
  }
  [[nodiscard]] std::int64_t least_frames() const override {
    return o_.method == DeltaOptions::Method::librosa ? o_.width : 1;
  }

 private:
  DeltaOptions o_;
};

const RegisterStage<Deltas, DeltaStageOptions> register_deltas{
    "deltas", "Appends the time derivatives of features to them.", true};

}  // namespace
}  // namespace melflow
