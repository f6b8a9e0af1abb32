// mfcc: computes cepstral coefficients of log-mel rows.
//
// In:  MelBatch of levels.
// Out: MelBatch with n_mfcc values a frame.

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/features/mel/cepstrum.h"
#include "stages/features/row_stage.h"
#include "stages/other_names.h"
#include "stages/settings_in_use.h"

namespace melflow {

template <>
struct EnumNames<CepstrumOptions::Norm> {
  static constexpr std::pair<const char*, CepstrumOptions::Norm> values[] = {
      {"none", CepstrumOptions::Norm::none}, {"ortho", CepstrumOptions::Norm::ortho}};
};
template <>
struct EnumNames<CepstrumOptions::LifterStyle> {
  static constexpr std::pair<const char*, CepstrumOptions::LifterStyle> values[] = {
      {"librosa", CepstrumOptions::LifterStyle::librosa},
      {"kaldi", CepstrumOptions::LifterStyle::kaldi}};
};

namespace {

struct MfccOptions {
  CepstrumOptions cepstrum;

  void describe(Schema& s) {
    s.other_names(other_names::of_mfcc());
    s.field("n_mfcc", cepstrum.n_mfcc,
            "number of cepstral coefficients of a frame, at most as many as mel bands")
        .range(1, 4096);
    s.field("dct_type", cepstrum.dct_type,
            "type of the discrete cosine transform from bands to coefficients; 2 is usual; 3: as "
            "dct_type=3 of scipy and librosa")
        .range(2, 3);
    s.field(
        "norm", cepstrum.norm,
        "scaling of the discrete cosine transform; ortho: orthonormal, as in librosa, torchaudio "
        "and Kaldi; none: unscaled, as in scipy with norm=None");
    s.field("lifter", cepstrum.lifter,
            "length L of the lifter (see lifter_style), which weights the coefficients so that "
            "higher ones count more; 0: none (Kaldi, HTK: 22)")
        .range(0, 1e6);
    s.field("lifter_style", cepstrum.lifter_style,
            "weight of coefficient i with lifter L; librosa: 1 + L/2 sin(pi (i+1) / L); kaldi: 1 + "
            "L/2 sin(pi i / L)")
        .used_with("lifter", [this] { return cepstrum.lifter > 0; });
    s.field("htk_compat", cepstrum.htk_compat,
            "order of the coefficients; true: coefficient 0 comes last, as in HTK, multiplied by "
            "the square root of 2 unless the energy of mel (use_energy) takes its place; false: it "
            "comes first");
  }
};

class Mfcc final : public RowStage {
 public:
  explicit Mfcc(MfccOptions options) : options_(options.cepstrum) {}

  [[nodiscard]] std::optional<Value> settings() const override {
    return settings_in_use(MfccOptions{options_});
  }

 protected:
  std::shared_ptr<const FinishStep> make_step(const FeatureInfo& in, FeatureInfo& out,
                                              PlanCheck& check) override {
    if (in.axis != "band") {
      check.error("", fmt::format("needs mel bands, what arrives are {}",
                                  in.is_samples() ? "samples" : in.axis + " columns"));
      return nullptr;
    }
    if (!in.is_log)
      check.warning("",
                    "takes the logarithm of mel bands, but these are linear; set log: db in mel");
    const int bands = in.columns - (in.energy_column >= 0 ? 1 : 0);
    if (options_.n_mfcc > bands) {
      check.error("n_mfcc", fmt::format("is {} but must be from 1 to the number of bands ({})",
                                        options_.n_mfcc, bands));
      return nullptr;
    }
    out.name = "mfcc";
    out.axis = "coefficient";
    out.column_hz.clear();
    out.unit = "cepstrum of " + in.unit;
    if (in.energy_column >= 0) out.energy_column = options_.htk_compat ? options_.n_mfcc - 1 : 0;
    return cepstrum_step(options_, in.columns, in.energy_column);
  }

 private:
  CepstrumOptions options_;
};

const RegisterStage<Mfcc, MfccOptions> register_mfcc{
    "mfcc", "Cepstral coefficients (MFCC) of log mel bands.", true};

}  // namespace
}  // namespace melflow
