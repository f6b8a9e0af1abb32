// The common base of the stages that call a function of Python.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/python/python_options.h"
#include "stages/row_type.h"
#include "stages/sample_scale.h"

namespace melflow {

inline std::vector<float> floats_of(const Samples& samples) {
  std::vector<float> out(static_cast<std::size_t>(samples.count));
  const bool is_float = samples.type == SampleType::float32;
  to_float(samples.data, out.size(), is_float ? NumberType::float32 : NumberType::int16,
           out.data());
  return out;
}

inline std::optional<ItemError> longer_than_a_block(bool is_whole, std::size_t values,
                                                    const PythonOptions& options) {
  if (is_whole && values * sizeof(float) <= options.block.count) return std::nullopt;
  return ItemError::failed(
      "is longer than what the function takes at once; raise `block` of this node, or cut it "
      "before");
}

// The error where results have more values than the memory that is reserved for them.
inline std::optional<ItemError> too_many(std::size_t given, std::size_t taken, double grows) {
  if (static_cast<double>(given) <= grows * static_cast<double>(taken) + 512) return std::nullopt;
  return ItemError::failed(fmt::format(
      "the function gives {:.2f} times the values that it gets, and grows is {:g}; raise it",
      static_cast<double>(given) / static_cast<double>(std::max<std::size_t>(1, taken)), grows));
}

// The base of all stages that call a function; Kind is the kind of stage.
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
  // For stages that give samples; the others override it.
  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    caller_.open(check);
    Properties out = given;
    out.erase(property::kIsMarked);
    out.erase(property::kSamplesOfFile);
    return out;
  }
  [[nodiscard]] StageResources resources() const override { return caller_.resources(); }
  void start(RunContext& run) override { caller_.start(run); }
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
  // The same for rows, with memory for at least one, which a recording without samples may give.
  [[nodiscard]] std::size_t grown_rows(std::size_t input, const FeatureInfo& info) const {
    const std::size_t wider = (size_of(info.type) + sizeof(float) - 1) / sizeof(float);
    return wider * (grown(input) + grown(info.values_per_row() * sizeof(float)));
  }

  [[nodiscard]] Result<PythonResults> called_with(const Waveform& in, ItemContext& context) const {
    const auto count = static_cast<std::size_t>(in.samples.count);
    if (auto error = longer_than_a_block(in.first && in.last, count, options()))
      return std::move(*error);
    std::vector<PythonArray> arrays(1);
    arrays.front() = {floats_of(in.samples), {count}};
    return results_of(std::move(caller_.call(std::move(arrays), in.sample_rate).front()), context);
  }

  using Many = std::vector<std::shared_ptr<const Waveform>>;
  // Results as recordings of samples, which have their memory together.
  [[nodiscard]] Result<Many> waveforms(const Waveform& in, bool is_one,
                                       ItemContext& context) const {
    auto made = called_with(in, context);
    if (!made) return std::move(made.error());
    if (is_one && made->shapes.size() != 1)
      return ItemError::failed(fmt::format(
          "the function gives {} arrays of samples; give one, or write gives: waveforms",
          made->shapes.size()));
    if (auto error =
            too_many(made->count(), static_cast<std::size_t>(in.samples.count), options().grows))
      return std::move(*error);
    warn_of_scale(peak_of(made->floats()), context);
    const auto values = std::make_shared<const std::vector<std::byte>>(std::move(made->values));
    Many out;
    std::size_t at = 0;
    for (const auto& shape : made->shapes) {
      auto waveform = std::make_shared<Waveform>(in);
      waveform->marked.clear();
      waveform->samples = {values, values->data() + at, static_cast<std::int64_t>(shape.front()),
                           SampleType::float32};
      at += shape.front() * sizeof(float);
      out.push_back(std::move(waveform));
    }
    return out;
  }

  static bool warn_of_scale(float peak, const ItemContext& context) {
    const std::string remark = scale_remark(peak);
    if (!remark.empty()) context.warn("the function gives " + remark);
    return !remark.empty();
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
    std::vector<std::size_t> shape = made.shapes.front();
    // Units come as [rows], which was taken for one row; of floats it may be an embedding.
    if (info.has_integers() && columns == 1 && shape.size() == 2 && shape.front() == 1)
      std::swap(shape[0], shape[1]);
    std::size_t row = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) row *= shape[i];
    if (shape.size() == 2 && shape.front() == columns && row != columns && columns > 1)
      return ItemError::failed(
          fmt::format("the function gives an array ({}, {}), and rows of {} values are [rows, "
                      "columns]; give it the other way round (rows.T)",
                      shape.front(), row, columns));
    if (shape.size() < 2 || row != columns)
      return ItemError::failed(
          fmt::format("the function gives rows of {} values, and columns is {}; set columns: {}",
                      row, columns, row));
    if (auto error = too_many(made.count(), taken + columns, options().grows))
      return std::move(*error);
    auto out = std::make_shared<MelPart>();
    out->row_count = static_cast<std::int64_t>(shape.front());
    out->file = file;
    out->type = made.type;
    const std::size_t bytes = made.values.size();
    auto data = std::make_shared<Buffer>(
        context.run().pool.lease(std::max<std::size_t>(sizeof(float), bytes)));
    if (bytes > 0) std::memcpy(data->data(), made.values.data(), bytes);
    if (!info.has_integers())
      if (auto error = unstorable(data->as<float>(), 0, out->row_count, info, NumberType::float32))
        return std::move(*error);
    out->data = std::move(data);
    return std::shared_ptr<const MelPart>(std::move(out));
  }

  PythonCaller caller_;
};

}  // namespace melflow
