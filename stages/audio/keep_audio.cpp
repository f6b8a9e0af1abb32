// keep_audio: puts decoded audio into the source's store.
//
// In, out: Waveform, passed on unchanged. Keeps only whole files without errors or warnings; others
// are decoded in every run, so that every run reports the same.

#include "pipeline/stage/registry.h"
#include "stages/audio/store/feed.h"
#include "stages/facts.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

struct KeepState final : StageState {
  std::unique_ptr<AudioStore::Entry> entry;
};

class KeepAudio final : public StreamTransform<Waveform, Waveform, KeepState>, public FillingPass {
 public:
  explicit KeepAudio(NoOptions) { traits_.takes_sub_items = false; }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    feed_ = given.get_or(property::kFeed, nullptr);
    if (!feed_) check.error("", "is put there by a source with the option feed; remove it");
    Properties out = given;
    out.erase(property::kFeed);  // one store, one node that fills it
    return out;
  }
  [[nodiscard]] StageResources resources() const override { return {.passes_on = true}; }

  void start(RunContext& run) override {
    const RunTask& task = task_of(run);
    if (!task.is_dry() && task.corpus == nullptr) feed_->open(run, settings_up_to());
  }
  [[nodiscard]] bool begin_filling(Filling& filling) override {
    return feed_->store() != nullptr && feed_->store()->begin_filling(filling);
  }
  void filled(RunContext&) override { feed_->store()->filled(); }

  Result<std::shared_ptr<const Waveform>> process_block(std::shared_ptr<const Waveform> in,
                                                        KeepState& state,
                                                        ItemContext& context) const override {
    if (in->stored || feed_->store() == nullptr) return in;
    const Stream& stream = *context.origin().stream;
    if (in->first) state.entry = feed_->store()->begin(stream.index(), context.run());
    if (state.entry && !state.entry->add(*in)) state.entry.reset();
    if (state.entry && in->last && !stream.is_remarked(context.stage()) && in->is_timed())
      state.entry->close();
    return in;
  }

 private:
  std::shared_ptr<Feed> feed_;
};

const RegisterStage<KeepAudio, NoOptions> register_keep_audio{
    "keep_audio",
    "Stores decoded audio; file_list with feed: preload or cache inserts this stage."};

}  // namespace
}  // namespace melflow
