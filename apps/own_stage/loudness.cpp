// loudness: selects recordings by level: too quiet ones are skipped, very loud ones get a warning.
//
// In, out: Waveform, passed on unchanged. The level is the mean square of a recording's samples, in
// dB; 0 dB is full scale everywhere, and a full-scale sine has -3 dB. It does not depend on the
// blocks into which a long recording is divided.

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/items.h"

namespace {

// The options that a pipeline can set. `melflow stages`, the messages and the editor's completion
// are generated from describe().
struct LoudnessOptions {
  double min_db = -60;
  double warn_db = -3;

  void describe(melflow::Schema& s) {
    s.field("min_db", min_db, "level below which a recording is skipped [dB]").range(-200, 0);
    s.field("warn_db", warn_db, "level from which on a recording gets a warning [dB]")
        .range(-200, 10);
  }
};

// The state that is kept from block to block; each recording has its own.
struct LoudnessState final : melflow::StageState {
  double sum = 0;  // of squares, where full scale is 1
  std::int64_t count = 0;

  [[nodiscard]] double level() const { return 10 * std::log10(sum / static_cast<double>(count)); }
};

template <class Sample>
double sum_of_squares(const melflow::Samples& samples, double full_scale) {
  const auto* x = reinterpret_cast<const Sample*>(samples.data);
  double sum = 0;
  for (std::int64_t i = 0; i < samples.count; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum / (full_scale * full_scale);
}

class Loudness final
    : public melflow::StreamTransform<melflow::Waveform, melflow::Waveform, LoudnessState> {
 public:
  explicit Loudness(LoudnessOptions options) : options_(options) {}

  // Called before the run; reports errors in the options as a whole and in the input's properties.
  melflow::Properties plan(const melflow::Properties& given, const melflow::Requirements&,
                           melflow::PlanCheck& check) override {
    if (options_.warn_db < options_.min_db)
      check.error("warn_db",
                  fmt::format("{} is below min_db, {}", options_.warn_db, options_.min_db));
    return given;
  }

  // The output is the input, so the stage needs no memory of its own.
  [[nodiscard]] melflow::StageResources resources() const override { return {.passes_on = true}; }

  // Called from many threads at once, but the blocks of one recording come one by one and in order.
  melflow::Result<std::shared_ptr<const melflow::Waveform>> process_block(
      std::shared_ptr<const melflow::Waveform> in, LoudnessState& state,
      melflow::ItemContext& context) const override {
    state.sum += in->samples.type == melflow::SampleType::int16
                     ? sum_of_squares<std::int16_t>(in->samples, 32768)
                     : sum_of_squares<float>(in->samples, 1);
    state.count += in->samples.count;
    if (!std::isfinite(state.sum))
      return melflow::ItemError::failed("has a sample that is not a number");
    if (!in->last) return in;

    if (state.count == 0) return melflow::ItemError::skipped("has no samples");
    const double level = state.level();
    if (level < options_.min_db)
      return melflow::ItemError::skipped(
          fmt::format("has a level of {:.1f} dB, below min_db {}", level, options_.min_db));
    if (level >= options_.warn_db)
      context.warn(fmt::format("has a level of {:.1f} dB and may be clipped", level));
    return in;
  }

 private:
  LoudnessOptions options_;
};

// true: the stage's options change which rows an output has.
const melflow::RegisterStage<Loudness, LoudnessOptions> registered{
    "loudness", "Skips recordings that are too quiet, and warns about very loud ones.", true};

}  // namespace
