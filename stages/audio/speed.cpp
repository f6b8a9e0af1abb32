// speed: plays recordings faster or slower, which changes pitch and length together.
//
// In, out: Waveform, with unchanged samples and another sample rate. A later resample converts that
// to the required rate.

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/items.h"

namespace melflow {
namespace {

constexpr double kLeastFactor = 0.25, kMostFactor = 4;

struct SpeedOptions {
  std::vector<double> factors;
  void describe(Schema& s) {
    s.field(
        "factors", factors,
        "how fast the results of a repeat before this node are played, in their order: 1 is as it "
        "is, 2 twice as fast and half as long; each from 0.25 to 4");
  }
};

class Speed final : public Transform<Waveform, Waveform> {
 public:
  explicit Speed(SpeedOptions options) : options_(std::move(options)) {}

  // Resampling lengthens the blocks of a recording that gets a lower rate.
  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.erase(requirement::kSampleRate);
    if (const auto lowest = below.get(requirement::kLowestRate); lowest && has_factors())
      above.set(requirement::kLowestRate,
                *lowest / *std::min_element(options_.factors.begin(), options_.factors.end()));
    return above;
  }

  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    const auto repeated = given.get(property::kRepeated);
    if (!has_factors())
      check.error("factors", fmt::format("write a list of numbers from {} to {}, such as "
                                         "[0.9, 1, 1.1]",
                                         kLeastFactor, kMostFactor));
    else if (!repeated)
      check.error(
          "factors",
          fmt::format("are for the results of a repeat, and there is none before this node; "
                      "put one with times: {} before decode",
                      options_.factors.size()));
    else if (options_.factors.size() != static_cast<std::size_t>(repeated->times))
      check.error("factors",
                  fmt::format("has {} numbers, but repeat gives {} results; write as many",
                              options_.factors.size(), repeated->times));
    else
      repeat_ = repeated->by;
    if (!required.get(requirement::kLowestRate) || required.get(requirement::kSampleRate))
      check.error("",
                  "changes the sample rate, and nothing behind it brings that back; put a node of "
                  "the stage resample behind it");
    Properties out = given;
    out.erase(property::kSampleRate);
    return out;
  }
  [[nodiscard]] StageResources resources() const override { return {.passes_on = true}; }

  Result<std::shared_ptr<const Waveform>> process(std::shared_ptr<const Waveform> in,
                                                  ItemContext& context) const override {
    const SubItem* result = context.origin().sub_item.get();
    while (result != nullptr && result->by != repeat_) result = result->of.get();
    if (result == nullptr) return ItemError::failed("is not one of the results of a repeat");
    auto out = std::make_shared<Waveform>(*in);
    out->sample_rate =
        static_cast<int>(std::lround(in->sample_rate * options_.factors[result->number]));
    return std::shared_ptr<const Waveform>(std::move(out));
  }

 private:
  [[nodiscard]] bool has_factors() const {
    return !options_.factors.empty() &&
           std::all_of(options_.factors.begin(), options_.factors.end(),
                       [](double f) { return f >= kLeastFactor && f <= kMostFactor; });
  }

  SpeedOptions options_;
  const Stage* repeat_ = nullptr;
};

const RegisterStage<Speed, SpeedOptions> register_speed{
    "speed",
    "Plays the results of a repeat at different speeds, by another sample rate: a resample has to "
    "follow, which brings the rate back.",
    true};

}  // namespace
}  // namespace melflow
