// stack: joins neighbouring frames to one row, and skips frames between rows.
//
// In:  MelBatch.
// Out: MelBatch with `frames` times as many values a row and, with a hop, fewer rows.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "pipeline/stage/registry.h"
#include "stages/features/mel/stack_step.h"
#include "stages/features/row_stage.h"
#include "stages/other_names.h"
#include "stages/settings_in_use.h"

namespace melflow {

template <>
struct EnumNames<StackOptions::Head> {
  static constexpr std::pair<const char*, StackOptions::Head> values[] = {
      {"replicate", StackOptions::Head::replicate}, {"value", StackOptions::Head::value}};
};
template <>
struct EnumNames<StackOptions::Tail> {
  static constexpr std::pair<const char*, StackOptions::Tail> values[] = {
      {"drop", StackOptions::Tail::drop},
      {"replicate", StackOptions::Tail::replicate},
      {"value", StackOptions::Tail::value}};
};
template <>
struct EnumNames<StackOptions::Order> {
  static constexpr std::pair<const char*, StackOptions::Order> values[] = {
      {"frame_major", StackOptions::Order::frame_major},
      {"band_major", StackOptions::Order::band_major}};
};

namespace {

constexpr int kMostFrames = 1000;

struct StackStageOptions {
  StackOptions stack;
  std::optional<int> hop;

  void describe(Schema& s) {
    s.other_names(other_names::of_stack());
    s.other_values(other_names::values_of_stack());
    s.field("frames", stack.frames,
            "number of neighbouring frames that a row joins [frames]; 1: none, frames between rows "
            "are skipped (hop)")
        .range(1, kMostFrames);
    s.field("hop", hop,
            "distance from the first frame of a row to that of the next [frames]; 1: a row for "
            "every frame; not set: frames, so that rows share none")
        .range(1, kMostFrames);
    s.field("left", stack.left,
            "frames of the first row that are before the first frame of the recording or window "
            "[frames], less than frames; FunASR: (frames - 1) / 2")
        .range(0, kMostFrames - 1);
    s.field("head", stack.head,
            "what frames before the first are; replicate: copies of the first; value: filled with "
            "value")
        .used_with("left", [this] { return stack.left > 0; });
    s.field(
        "tail", stack.tail,
        "the last rows; drop: only rows whose frames are all there; replicate, value: a row for "
        "every hop frames, also begun ones, where frames after the last are copies of the last, "
        "or filled with value");
    s.field("value", stack.value, "value of frames before the first and after the last")
        .range(-1e30, 1e30)
        .used_with("head: value or tail: value", [this] { return has_value(); });
    s.field("order", stack.order,
            "order of the values of a row; frame_major: all columns of the first frame, then those "
            "of the next; band_major: all frames of the first column, then those of the next "
            "(SpeechBrain)")
        .used_with("frames above 1", [this] { return stack.frames > 1; });
  }
  [[nodiscard]] bool has_value() const {
    return (stack.left > 0 && stack.head == StackOptions::Head::value) ||
           stack.tail == StackOptions::Tail::value;
  }
};

class Stack final : public RowStage {
 public:
  explicit Stack(StackStageOptions options) : options_(options) {
    options_.stack.hop = options.hop.value_or(options.stack.frames);
    options_.hop = options_.stack.hop;
  }

  [[nodiscard]] std::optional<Value> settings() const override { return settings_in_use(options_); }

 protected:
  std::shared_ptr<const FinishStep> make_step(const FeatureInfo& in, FeatureInfo& out,
                                              PlanCheck& check) override {
    const StackOptions& o = options_.stack;
    if (in.is_samples()) {
      check.error("", "needs rows of features, what arrives are samples");
      return nullptr;
    }
    if (o.frames == 1 && o.hop == 1) {
      check.error("frames",
                  "is 1, which with hop: 1 changes nothing; write how many frames a row "
                  "joins, or how far rows are apart in hop");
      return nullptr;
    }
    if (o.left >= o.frames) {
      check.error("left", fmt::format("is {} but must be less than frames ({})", o.left, o.frames));
      return nullptr;
    }
    constexpr std::int64_t kMostColumns = 1 << 20;
    if (std::int64_t{o.frames} * in.columns > kMostColumns) {
      check.error("frames",
                  fmt::format("is {} but must be at most {} for rows of {} columns", o.frames,
                              std::max<std::int64_t>(1, kMostColumns / in.columns), in.columns));
      return nullptr;
    }
    if (o.frames > 1) {
      out.axis = "feature";
      out.column_hz.clear();
      out.energy_column = -1;
    }
    constexpr std::int64_t kLongestHop = std::numeric_limits<int>::max();
    out.hop = static_cast<int>(std::min(std::int64_t{in.hop} * o.hop, kLongestHop));
    return stack_step(o);
  }
  [[nodiscard]] std::string resized_by() const override { return "stack"; }
  [[nodiscard]] std::int64_t least_frames() const override {
    const StackOptions& o = options_.stack;
    return o.tail == StackOptions::Tail::drop ? std::max(1, o.frames - o.left) : 1;
  }

 private:
  StackStageOptions options_;
};

const RegisterStage<Stack, StackStageOptions> register_stack{
    "stack", "Joins neighbouring frames to one row, and skips frames between rows.", true};

}  // namespace
}  // namespace melflow
