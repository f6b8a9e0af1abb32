// python that gives rows.
//
// In:  Waveform or MelBatch, of whole recordings.
// Out: MelBatch.

#include "stages/python/calling.h"

namespace melflow {
namespace {

class PythonFeatures final : public Calling<Transform<Waveform, MelBatch>> {
 public:
  explicit PythonFeatures(PythonOptions options) : Calling(std::move(options)) {}

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = Calling::require(below);
    above.erase(requirement::kRowTypes);  // there are no rows before this stage
    return above;
  }
  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    caller_.open(check);
    auto info = std::make_shared<FeatureInfo>();
    if (!options().columns)
      check.error("columns", "is needed where samples become rows: the number of values of a row");
    info->name = kConcatRows;
    info->axis = "column";
    info->columns = options().columns.value_or(1);
    info->sample_rate = static_cast<int>(given.get_or(property::kSampleRate, 0));
    *info->computed_by = {"python", "any", true};
    caller_.describe_rows(*info, check);
    info_ = info;
    Properties out = given;
    out.set(property::kFeatures, info_);
    return out;
  }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return grown_rows(input, *info_);
  }

  Result<std::shared_ptr<const MelBatch>> process(std::shared_ptr<const Waveform> in,
                                                  ItemContext& context) const override {
    auto made = called_with(*in, context);
    if (!made) return std::move(made.error());
    auto part = rows(*made, static_cast<std::size_t>(in->samples.count), *info_, in->file, context);
    if (!part) return std::move(part.error());
    auto out = std::make_shared<MelBatch>();
    out->info = info_;
    out->parts.push_back(std::move(*part));
    return std::shared_ptr<const MelBatch>(std::move(out));
  }

 private:
  std::shared_ptr<const FeatureInfo> info_;
};

class PythonRows final : public Calling<Transform<MelBatch, MelBatch>> {
 public:
  explicit PythonRows(PythonOptions options) : Calling(std::move(options)) {
    traits_.order = BlockOrder::any;
  }

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = Calling::require(below);
    require_rows(above, NumberType::float32);
    return above;
  }
  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    caller_.open(check);
    if (options().gives != PythonGives::rows)
      check.error("gives", "with takes: rows it gives rows; write gives: rows");
    if (options().blocks) check.error("blocks", "is for samples; with takes: rows, remove it");
    if (options().call == kOnnxFunction && !options().columns)
      check.error("columns", "is needed: the number of values that the model gives for a row");
    in_ = given.get_or(property::kFeatures, nullptr);
    // The node before reports an error of its own.
    if (!in_ || refuse_integers(*in_, check)) return given;
    auto out = std::make_shared<FeatureInfo>(*in_);
    caller_.describe_rows(*out, check);
    const auto& columns = options().columns;
    if (columns) {
      out->columns = *columns;
      out->frames = 0;
    }
    if (columns || out->has_integers()) {
      out->name = kConcatRows;
      out->axis = "column";
      out->unit.clear();
      out->column_hz.clear();
      out->groups.clear();
      out->energy_column = -1;
    }
    out->is_full_scale = false;
    out_ = out;
    Properties properties = given;
    properties.set(property::kFeatures, out_);
    return properties;
  }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return grown_rows(input, *out_);
  }

  Result<std::shared_ptr<const MelBatch>> process(std::shared_ptr<const MelBatch> in,
                                                  ItemContext& context) const override {
    auto out = std::make_shared<MelBatch>();
    out->info = out_;
    out->parts.resize(in->parts.size());
    std::vector<PythonArray> arrays;
    std::vector<std::size_t> called;  // the part that each of them is
    for (std::size_t i = 0; i < in->parts.size(); ++i) {
      if (!in->parts[i] || context.is_lost(i)) continue;
      const MelPart& part = *in->parts[i];
      const std::size_t taken = values_of(part);
      if (auto error = longer_than_a_block(part.is_whole() && !part.pending, taken, options())) {
        context.fail(i, std::move(*error));
        continue;
      }
      std::vector<std::size_t> shape{static_cast<std::size_t>(part.row_count)};
      if (in_->frames > 0) shape.push_back(static_cast<std::size_t>(in_->frames));
      shape.push_back(static_cast<std::size_t>(in_->columns));
      arrays.push_back({{part.values(), part.values() + taken}, std::move(shape)});
      called.push_back(i);
    }
    std::vector<PythonAnswer> answers;
    if (!arrays.empty()) answers = caller_.call(std::move(arrays), 0);
    for (std::size_t n = 0; n < called.size(); ++n) {
      const std::size_t i = called[n];
      auto part = changed(*in->parts[i], std::move(answers[n]), context, i);
      if (part)
        out->parts[i] = std::move(*part);
      else
        context.fail(i, std::move(part.error()));
    }
    return std::shared_ptr<const MelBatch>(std::move(out));
  }

 private:
  [[nodiscard]] std::size_t values_of(const MelPart& part) const {
    return static_cast<std::size_t>(part.row_count) * in_->values_per_row();
  }
  Result<std::shared_ptr<const MelPart>> changed(const MelPart& in, PythonAnswer answer,
                                                 ItemContext& context, std::size_t i) const {
    auto made = results_of(std::move(answer), context, i);
    if (!made) return std::move(made.error());
    return rows(*made, values_of(in), *out_, in.file, context);
  }

  std::shared_ptr<const FeatureInfo> in_, out_;
};

const RegisterStage<PythonFeatures, PythonOptions> register_features{
    "python_features", "python with gives: rows.", true};
const RegisterStage<PythonRows, PythonOptions> register_rows{"python_rows",
                                                             "python with takes: rows.", true};

}  // namespace
}  // namespace melflow
