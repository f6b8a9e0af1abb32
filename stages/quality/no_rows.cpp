// no_rows: for outputs that are only a list of recordings with what is known of each.
//
// In:  Waveform, of recordings of any kind.
// Out: MelBatch of one part without rows. The last one has the facts of the recording.

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/node_group.h"

namespace melflow {
namespace {

class NoRows final : public Transform<Waveform, MelBatch>, public TellsLength {
 public:
  explicit NoRows(NoOptions) {}

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.erase(requirement::kRowTypes);  // there are no rows before this stage
    return above;
  }

  Properties plan(const Properties& given, const Requirements&, PlanCheck&) override {
    auto info = std::make_shared<FeatureInfo>();
    info->name = kConcatRows;
    info->columns = 1;
    info->axis = "column";
    info->unit = "none";
    *info->computed_by = {"cpu", "any", true};
    info_ = info;
    Properties out = given;
    out.set(property::kFeatures, info_);
    return out;
  }

  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t) const override {
    return 0;
  }

  Result<std::shared_ptr<const MelBatch>> process(std::shared_ptr<const Waveform> in,
                                                  ItemContext& context) const override {
    auto part = std::make_shared<MelPart>();
    part->data = std::make_shared<Buffer>(context.run().pool.lease(0));
    part->last = in->last;
    part->file = in->file;
    auto out = std::make_shared<MelBatch>();
    out->info = info_;
    out->parts.push_back(std::move(part));
    return std::shared_ptr<const MelBatch>(std::move(out));
  }

  [[nodiscard]] std::optional<RecordingLength> length_of(RecordingLength in) const override {
    in.rows = 0;
    return in;
  }

 private:
  std::shared_ptr<const FeatureInfo> info_;
};

const RegisterStage<NoRows, NoOptions> register_no_rows{
    "no_rows",
    "Makes no rows, so that an output lists the recordings alone, with what is known and measured "
    "of each.",
    true};

}  // namespace
}  // namespace melflow
