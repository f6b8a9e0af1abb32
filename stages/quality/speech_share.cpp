// speech_share: measures the share of a recording that vad has marked.
//
// In, out: Waveform, unchanged but for FileAudio::measured in the last block of a recording.

#include <cstdint>

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/measures.h"
#include "stages/node_group.h"

namespace melflow {
namespace {

struct MarkedSamples final : StageState {
  std::int64_t marked = 0, all = 0;
};

class SpeechShare final : public StreamTransform<Waveform, Waveform, MarkedSamples>,
                          public TellsLength {
 public:
  explicit SpeechShare(NoOptions) {}

  [[nodiscard]] std::optional<RecordingLength> length_of(RecordingLength in) const override {
    return in;
  }
  [[nodiscard]] StageResources resources() const override { return {.passes_on = true}; }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    if (!given.get_or(property::kIsMarked, false))
      check.error(
          "from",
          "nothing is marked in what comes; take from a node vad, with nothing between that "
          "changes the samples");
    Properties out = given;
    MeasureSet measured = given.get_or(property::kMeasures, MeasureSet{});
    measured.set(static_cast<std::size_t>(Measure::speech_share));
    out.set(property::kMeasures, measured);
    return out;
  }

  Result<std::shared_ptr<const Waveform>> process_block(std::shared_ptr<const Waveform> in,
                                                        MarkedSamples& state,
                                                        ItemContext&) const override {
    state.all += in->samples.count;
    for (const Stretch& s : in->marked) state.marked += s.end - s.begin;
    if (!in->last || state.all == 0) return in;
    auto values = in->file.measured ? std::make_shared<MeasureValues>(*in->file.measured)
                                    : std::make_shared<MeasureValues>();
    (*values)[Measure::speech_share] =
        static_cast<float>(static_cast<double>(state.marked) / static_cast<double>(state.all));
    auto out = std::make_shared<Waveform>(*in);
    out->file.measured = std::move(values);
    return std::shared_ptr<const Waveform>(std::move(out));
  }
};

const RegisterStage<SpeechShare, NoOptions> register_speech_share{
    "speech_share",
    "Measures which share of a recording the stage vad before it has marked as speech, as a column "
    "of the output and for `filter`.",
    true};

}  // namespace
}  // namespace melflow
