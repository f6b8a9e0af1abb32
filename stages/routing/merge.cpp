// merge: joins the branches of a route, or several sources.
//
// In, out: file, bytes, waveform, windows, batch or rows, passed on unchanged. The plan checks that
// every file comes by only one of the inputs.

#include "pipeline/stage/registry.h"
#include "stages/any_payload.h"
#include "stages/facts.h"
#include "stages/node_group.h"

namespace melflow {
namespace {

class Merge final : public ItemStage, public PassesAny {
 public:
  explicit Merge(NoOptions)
      : ItemStage({.kind = StageKind::transform,
                   .in = port_type<AnyPayload>(),
                   .out = port_type<AnyPayload>(),
                   .order = BlockOrder::kept,
                   .joins = true}) {}

  static std::vector<PortType> ports() { return any_payload_ports(); }
  void set_port(PortType port) override { port_ = port; }
  [[nodiscard]] StageResources resources() const override { return {.passes_on = true}; }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    if (port_ == port_type<MelBatch>() && !given.get(property::kFeatures))
      check.error("from",
                  "the rows that come here are made by several nodes; join what comes "
                  "before them, so that one node makes all of the rows (concat puts several kinds "
                  "of rows of the same recordings side by side)");
    return given;
  }

  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&, ItemContext&) override {
    return Emission{item.payload, item.bytes, item.rows};
  }

 private:
  PortType port_;
};

const RegisterStage<Merge, NoOptions> register_merge{
    "merge",
    "Joins the outputs of a route, or the files of several sources; files pass on unchanged, in "
    "the order in which they come."};

}  // namespace
}  // namespace melflow
