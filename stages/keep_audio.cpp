// keep_audio: puts decoded audio into the source's store.
//
// In, out: Waveform, handed on as it is. Only whole files that nothing is said about are kept:
// others are decoded in every run, so that the same is said in every run.

#include "pipeline/registry.h"
#include "stages/audio_store/feed.h"

namespace melflow {
namespace {

struct KeepState final : StageState {
  std::unique_ptr<AudioStore::Entry> entry;
};

class KeepAudio final : public StreamTransform<Waveform, Waveform, KeepState> {
 public:
  explicit KeepAudio(NoOptions) {}

  Facts plan(const Facts& given, const Facts&, PlanCheck& check) override {
    if (const auto link = given.get_object<FeedLink>(Feed::kFact)) feed_ = link->feed;
    if (!feed_) check.error("", "is put there by a source with the option feed; leave it out");
    Facts out = given;
    out.erase_object(Feed::kFact);  // one store, one node that fills it
    return out;
  }
  [[nodiscard]] bool passes_on() const override { return true; }

  void start(RunContext& run) override { feed_->open(run, contract()); }
  [[nodiscard]] bool fills() const override { return feed_->store() != nullptr && feed_->store()->fills(); }
  void filled(RunContext&) override { feed_->store()->filled(); }

  Result<std::shared_ptr<const Waveform>> process_block(std::shared_ptr<const Waveform> in,
                                                        KeepState& state,
                                                        ItemContext& context) const override {
    if (in->stored || feed_->store() == nullptr) return in;
    const Stream& stream = *context.origin().stream;
    if (in->first) state.entry = feed_->store()->begin(stream.index(), context.run());
    if (state.entry && !state.entry->add(*in)) state.entry.reset();
    if (state.entry && in->last && !stream.is_remarked()) state.entry->close();
    return in;
  }

 private:
  std::shared_ptr<Feed> feed_;
};

const RegisterStage<KeepAudio, NoOptions> registered{
    "keep_audio", "Stores decoded audio for a source with the option feed, which puts it there."};

}  // namespace
}  // namespace melflow
