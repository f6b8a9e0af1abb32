// pcen: per-channel energy normalisation instead of a logarithm.
//
// In:  MelBatch of linear bands or bins.
// Out: MelBatch of the same shape.

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/features/mel/pcen_step.h"
#include "stages/features/row_stage.h"

namespace melflow {
namespace {

struct PcenStageOptions {
  PcenOptions pcen;

  void describe(Schema& s) {
    s.field("gain", pcen.gain,
            "exponent g of the smoothed value m in (x / (m + eps)^g + bias)^power - bias^power, x "
            "being the value of a column; 0: no division")
        .range(0, 10);
    s.field("bias", pcen.bias, "bias in (x / (m + eps)^gain + bias)^power - bias^power; 0: none")
        .range(0, 1e9);
    s.field("power", pcen.power,
            "exponent in (x / (m + eps)^gain + bias)^power - bias^power, which compresses the "
            "values; 0: ln(1 + x / (m + eps)^gain) instead")
        .range(0, 10);
    s.field("time_constant", pcen.time_constant,
            "time constant of the smoothing [s]; longer: the level of a column adapts more slowly")
        .greater_than(0)
        .highest = 1e6;
    s.field("b", pcen.b,
            "coefficient of the smoothing m[t] = (1 - b) m[t-1] + b x[t]; not set: computed from "
            "time_constant and the rate of the frames")
        .greater_than(0)
        .highest = 1;
    s.field("eps", pcen.eps,
            "number added to the smoothed value; keeps silence from being divided by 0")
        .greater_than(0)
        .highest = 1e9;
  }
};

class Pcen final : public RowStage {
 public:
  explicit Pcen(PcenStageOptions options) : options_(options.pcen) {}

  // Writes the coefficient instead of the time constant from which it may be computed.
  [[nodiscard]] std::optional<Value> settings() const override {
    PcenStageOptions own{options_};
    Schema s;
    own.describe(s);
    Value out = Value::map({});
    const Value all = s.echo();
    for (const Value::Entry& e : all.entries())
      if (e.key != "time_constant") out.set(e.key, e.value);
    return out;
  }

 protected:
  std::shared_ptr<const FinishStep> make_step(const FeatureInfo& in, FeatureInfo& out,
                                              PlanCheck& check) override {
    const bool is_linear = in.unit.starts_with("power") || in.unit.starts_with("amplitude");
    if (!is_linear || in.unit.find(',') != std::string::npos) {
      check.error("", fmt::format("needs linear bands or bins (power or amplitude), what arrives "
                                  "is in {}; set log: none and normalize: none in mel",
                                  in.unit));
      return nullptr;
    }
    if (in.energy_column >= 0) {
      check.error("",
                  "needs rows without an energy, which is a logarithm; set use_energy: false "
                  "in mel");
      return nullptr;
    }
    if (!options_.b)
      options_.b =
          pcen_coefficient(options_.time_constant, static_cast<double>(in.sample_rate) / in.hop);
    out.unit = "per-channel energy of " + in.unit;
    return pcen_step(options_);
  }

 private:
  PcenOptions options_;
};

const RegisterStage<Pcen, PcenStageOptions> register_pcen{
    "pcen", "Per-channel energy normalisation (PCEN) of linear mel bands.", true};

}  // namespace
}  // namespace melflow
