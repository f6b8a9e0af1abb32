// python: calls a function of Python with each recording.
//
// In:  Waveform or MelBatch, of whole recordings; with `blocks`, Waveform of any length.
// Out: Waveform, also several for a recording; Waveform with marked stretches; or MelBatch.
//
// A node of this stage becomes one of six, by what it takes and gives.

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/python/python_options.h"
#include "stages/row_type.h"

namespace melflow {
namespace {

using Many = std::vector<std::shared_ptr<const Waveform>>;

std::vector<float> floats_of(const Samples& samples) {
  std::vector<float> out(static_cast<std::size_t>(samples.count));
  const bool is_float = samples.type == SampleType::float32;
  to_float(samples.data, out.size(), is_float ? NumberType::float32 : NumberType::int16,
           out.data());
  return out;
}

std::optional<ItemError> longer_than_a_block(bool is_whole, std::size_t values,
                                             const PythonOptions& options) {
  if (is_whole && values * sizeof(float) <= options.block.count) return std::nullopt;
  return ItemError::failed(
      "is longer than what the function takes at once; raise `block` of this node, or cut it "
      "before");
}

// The error where results have more values than the memory that is reserved for them.
std::optional<ItemError> too_many(std::size_t given, std::size_t taken, double grows) {
  if (static_cast<double>(given) <= grows * static_cast<double>(taken) + 512) return std::nullopt;
  return ItemError::failed(fmt::format(
      "the function gives {:.2f} times the values that it gets, and grows is {:g}; raise it",
      static_cast<double>(given) / static_cast<double>(std::max<std::size_t>(1, taken)), grows));
}

// What all stages that call a function do; Kind is the kind of stage.
template <class Kind>
class Calling : public Kind {
 public:
  static constexpr const char* kFeatureStage = "python";
  static constexpr bool kRunsCode = true;

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.erase(requirement::kBlockMultiple);
    above.set(
        requirement::kWholeBlock,
        std::max<std::uint64_t>(options().block.count, below.get_or(requirement::kWholeBlock, 0)));
    return above;
  }
  // Of samples; stages that give something else have their own.
  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    caller_.open(check);
    Properties out = given;
    out.erase(property::kIsMarked);
    out.erase(property::kSamplesOfFile);
    return out;
  }
  [[nodiscard]] StageResources resources() const override { return caller_.resources(); }
  [[nodiscard]] std::optional<Value> settings() const override { return caller_.settings(); }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return grown(input);
  }
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    return caller_.summary();
  }

 protected:
  explicit Calling(PythonOptions options) : caller_(std::move(options)) {}
  [[nodiscard]] const PythonOptions& options() const { return caller_.options(); }

  // The most bytes that a function gives for an input of so many bytes, which may be of int16.
  [[nodiscard]] std::size_t grown(std::size_t input) const {
    const auto taken =
        static_cast<double>(std::min<std::uint64_t>(2 * input, options().block.count));
    return BufferPool::rounded(static_cast<std::size_t>(taken * options().grows) + 4096);
  }
  // With memory for one row, which a recording without samples may give.
  [[nodiscard]] std::size_t grown_rows(std::size_t input, const FeatureInfo& info) const {
    return grown(input) + grown(info.values_per_row() * sizeof(float));
  }

  [[nodiscard]] Result<PythonResults> called_with(const Waveform& in, ItemContext& context) const {
    const auto count = static_cast<std::size_t>(in.samples.count);
    if (auto error = longer_than_a_block(in.first && in.last, count, options()))
      return std::move(*error);
    std::vector<PythonArray> arrays(1);
    arrays.front() = {floats_of(in.samples), {count}};
    return results_of(std::move(caller_.call(std::move(arrays), in.sample_rate).front()), context);
  }

  // Results as recordings of samples, which have their memory together.
  [[nodiscard]] Result<Many> waveforms(const Waveform& in, bool is_one,
                                       ItemContext& context) const {
    auto made = called_with(in, context);
    if (!made) return std::move(made.error());
    if (is_one && made->shapes.size() != 1)
      return ItemError::failed(fmt::format(
          "the function gives {} arrays of samples; give one, or write gives: waveforms",
          made->shapes.size()));
    if (auto error = too_many(made->values.size(), static_cast<std::size_t>(in.samples.count),
                              options().grows))
      return std::move(*error);
    const auto values = std::make_shared<const std::vector<float>>(std::move(made->values));
    Many out;
    std::size_t at = 0;
    for (const auto& shape : made->shapes) {
      auto waveform = std::make_shared<Waveform>(in);
      waveform->marked.clear();
      waveform->samples = {values, reinterpret_cast<const std::byte*>(values->data() + at),
                           static_cast<std::int64_t>(shape.front()), SampleType::float32};
      at += shape.front();
      out.push_back(std::move(waveform));
    }
    return out;
  }

  // Results as the rows of a recording. `taken`: the number of values that the function got.
  [[nodiscard]] Result<std::shared_ptr<const MelPart>> rows(const PythonResults& made,
                                                            std::size_t taken,
                                                            const FeatureInfo& info,
                                                            const FileAudio& file,
                                                            ItemContext& context) const {
    if (made.shapes.size() != 1)
      return ItemError::failed(
          fmt::format("the function gives {} arrays of rows; give one", made.shapes.size()));
    const std::size_t columns = info.values_per_row();
    const std::vector<std::size_t>& shape = made.shapes.front();
    std::size_t row = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) row *= shape[i];
    if (shape.size() < 2 || row != columns)
      return ItemError::failed(
          fmt::format("the function gives rows of {} values, and columns is {}; set columns: {}",
                      row, columns, row));
    if (auto error = too_many(made.values.size(), taken + columns, options().grows))
      return std::move(*error);
    auto out = std::make_shared<MelPart>();
    out->row_count = static_cast<std::int64_t>(shape.front());
    out->file = file;
    const std::size_t bytes = made.values.size() * sizeof(float);
    auto data = std::make_shared<Buffer>(
        context.run().pool.lease(std::max<std::size_t>(sizeof(float), bytes)));
    std::memcpy(data->data(), made.values.data(), bytes);
    if (auto error = unstorable(data->as<float>(), 0, out->row_count, info, NumberType::float32))
      return std::move(*error);
    out->data = std::move(data);
    return std::shared_ptr<const MelPart>(std::move(out));
  }

  PythonCaller caller_;
};

class PythonWaveform final : public Calling<Transform<Waveform, Waveform>> {
 public:
  explicit PythonWaveform(PythonOptions options) : Calling(std::move(options)) {}

  static std::vector<NodeSpec> expand(const NodeSpec& spec) {
    const auto is = [&spec](const char* option, std::string_view wanted) {
      const Value* value = spec.options.find(option);
      return value != nullptr && value->text() == wanted;
    };
    const Value* blocks = spec.options.find("blocks");
    const bool has_blocks = blocks != nullptr && !blocks->is_null();
    const char* stage = is("takes", "rows")         ? "python_rows"
                        : has_blocks                ? "python_blocks"
                        : is("gives", "rows")       ? "python_features"
                        : is("gives", "utterances") ? "python_utterances"
                        : is("gives", "waveforms")  ? "python_waveforms"
                                                    : "python";
    NodeSpec out = spec;
    out.options.set("stage", Value::scalar(stage, spec.mark));
    return {std::move(out)};
  }

  Result<std::shared_ptr<const Waveform>> process(std::shared_ptr<const Waveform> in,
                                                  ItemContext& context) const override {
    auto made = waveforms(*in, true, context);
    if (!made) return std::move(made.error());
    return std::move(made->front());
  }
};

class PythonWaveforms final : public Calling<OneToMany<Waveform, Waveform>> {
 public:
  explicit PythonWaveforms(PythonOptions options) : Calling(std::move(options)) {}
  Result<Many> process(std::shared_ptr<const Waveform> in, ItemContext& context) const override {
    return waveforms(*in, false, context);
  }
};

struct PythonBlocksState final : StageState {
  std::unique_ptr<PythonStream> object;
  std::vector<float> rest;  // samples of a block that is not complete
  std::int64_t given = 0;   // samples so far
};

class PythonBlocks final : public Calling<StreamTransform<Waveform, Waveform, PythonBlocksState>> {
 public:
  explicit PythonBlocks(PythonOptions options) : Calling(std::move(options)) {}

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.erase(requirement::kBlockMultiple);
    return above;
  }
  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    if (options().gives != PythonGives::waveform)
      check.error("gives", "with blocks a function gives samples; write gives: waveform");
    if (options().batch) check.error("batch", "and blocks are both given; remove one");
    if (options().processes > 0)
      check.error("processes",
                  "is for functions that get whole recordings; with blocks, write processes: 0");
    return Calling::plan(given, required, check);
  }
  // With the samples that were kept before, and those that the object may give late.
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    const double most = options().grows * static_cast<double>(2 * input + block_bytes());
    return BufferPool::rounded(static_cast<std::size_t>(most) + 4096);
  }

  Result<std::shared_ptr<const Waveform>> process_block(std::shared_ptr<const Waveform> in,
                                                        PythonBlocksState& state,
                                                        ItemContext& context) const override {
    const auto size = static_cast<std::size_t>(*options().blocks);
    if (!state.object) state.object = caller_.open_stream();
    const std::vector<float> samples = floats_of(in->samples);
    std::vector<PythonArray> blocks;
    for (std::size_t at = 0; at < samples.size();) {
      const std::size_t more = std::min(size - state.rest.size(), samples.size() - at);
      const float* from = samples.data() + at;
      state.rest.insert(state.rest.end(), from, from + more);
      at += more;
      if (state.rest.size() == size) blocks.push_back({std::exchange(state.rest, {}), {size}});
    }
    if (in->last && !state.rest.empty()) {
      const std::size_t count = state.rest.size();
      blocks.push_back({std::exchange(state.rest, {}), {count}});
    }
    auto out = std::make_shared<Waveform>(*in);
    out->marked.clear();
    out->samples = {nullptr, nullptr, 0, SampleType::float32};
    out->start = state.given;
    out->stored = false;
    if (blocks.empty() && !in->last) return std::shared_ptr<const Waveform>(std::move(out));
    auto made =
        results_of(state.object->call(std::move(blocks), in->sample_rate, in->last), context);
    if (!made) return std::move(made.error());
    const std::size_t count = made->values.size();
    if (auto error = too_many(count, samples.size() + size, options().grows))
      return std::move(*error);
    const auto values = std::make_shared<const std::vector<float>>(std::move(made->values));
    out->samples = {values, reinterpret_cast<const std::byte*>(values->data()),
                    static_cast<std::int64_t>(count), SampleType::float32};
    state.given += out->samples.count;
    return std::shared_ptr<const Waveform>(std::move(out));
  }

 private:
  [[nodiscard]] std::size_t block_bytes() const {
    return sizeof(float) * static_cast<std::size_t>(options().blocks.value_or(1));
  }
};

class PythonUtterances final : public Calling<Transform<Waveform, Waveform>> {
 public:
  explicit PythonUtterances(PythonOptions options) : Calling(std::move(options)) {}

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    caller_.open(check);
    Properties out = given;
    out.set(property::kIsMarked, true);
    return out;
  }
  [[nodiscard]] StageResources resources() const override {
    StageResources out = caller_.resources();
    out.passes_on = true;
    return out;
  }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return input;
  }

  Result<std::shared_ptr<const Waveform>> process(std::shared_ptr<const Waveform> in,
                                                  ItemContext& context) const override {
    auto made = called_with(*in, context);
    if (!made) return std::move(made.error());
    auto out = std::make_shared<Waveform>(*in);
    out->marked.clear();
    const std::vector<float>& times = made->values;
    for (std::size_t i = 0; i + 1 < times.size(); i += 2) {
      const auto at = [&](float seconds) {
        return std::llround(static_cast<double>(seconds) * in->sample_rate);
      };
      const Stretch s{at(times[i]), std::min<std::int64_t>(at(times[i + 1]), in->samples.count)};
      const std::int64_t from = out->marked.empty() ? 0 : out->marked.back().end;
      // Rounded up to frames it may end a little later; in samples, not seconds, much later.
      const bool is_beyond = at(times[i + 1]) - in->samples.count > in->sample_rate / 10;
      if (s.begin < from || s.end <= s.begin || is_beyond)
        return ItemError::failed(fmt::format(
            "the function gives an utterance from {:g} s to {:g} s; they come in order, without "
            "overlap, within the recording of {:g} s",
            times[i], times[i + 1],
            static_cast<double>(in->samples.count) / std::max(1, in->sample_rate)));
      out->marked.push_back(s);
    }
    return std::shared_ptr<const Waveform>(std::move(out));
  }
};

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
    if (!in_) return given;  // the node before reports an error of its own
    auto out = std::make_shared<FeatureInfo>(*in_);
    if (const auto& columns = options().columns) {
      out->name = kConcatRows;
      out->axis = "column";
      out->columns = *columns;
      out->unit.clear();
      out->frames = 0;
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

const RegisterStage<PythonWaveform, PythonOptions> register_python{
    "python", "Calls a function of Python with each recording.", true};
const RegisterStage<PythonWaveforms, PythonOptions> register_waveforms{
    "python_waveforms", "python with gives: waveforms.", true};
const RegisterStage<PythonUtterances, PythonOptions> register_utterances{
    "python_utterances", "python with gives: utterances.", true};
const RegisterStage<PythonBlocks, PythonOptions> register_blocks{"python_blocks",
                                                                 "python with blocks.", true};
const RegisterStage<PythonFeatures, PythonOptions> register_features{
    "python_features", "python with gives: rows.", true};
const RegisterStage<PythonRows, PythonOptions> register_rows{"python_rows",
                                                             "python with takes: rows.", true};

}  // namespace
}  // namespace melflow
