// python with `blocks`: an object of Python gets each recording, in blocks of a fixed size.
//
// In, out: Waveform, of any length.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "stages/python/calling.h"

namespace melflow {
namespace {

struct PythonBlocksState final : StageState {
  std::unique_ptr<PythonStream> object;
  std::vector<float> rest;  // samples of a block that is not complete
  std::int64_t given = 0;   // samples so far
  bool is_warned = false;   // of their scale
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
  // Includes the samples kept from earlier blocks, and those that the object may give late.
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    const double most = options().grows * static_cast<double>(2 * input + 2 * block_bytes());
    return BufferPool::rounded(static_cast<std::size_t>(most) + 4096);
  }

  Result<std::shared_ptr<const Waveform>> process_block(std::shared_ptr<const Waveform> in,
                                                        PythonBlocksState& state,
                                                        ItemContext& context) const override {
    const auto size = static_cast<std::size_t>(*options().blocks);
    if (!state.object) state.object = caller_.open_stream();
    const std::vector<float> samples = floats_of(in->samples);
    std::size_t taken = state.rest.size() + samples.size();
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
    taken -= state.rest.size();
    auto out = std::make_shared<Waveform>(*in);
    out->marked.clear();
    out->samples = {nullptr, nullptr, 0, SampleType::float32};
    out->start = state.given;
    out->stored = false;
    if (blocks.empty() && !in->last) return std::shared_ptr<const Waveform>(std::move(out));
    auto made =
        results_of(state.object->call(std::move(blocks), in->sample_rate, in->last), context);
    if (!made) return std::move(made.error());
    const std::size_t count = made->count();
    if (auto error = too_many(count, taken + size, options().grows)) return std::move(*error);
    if (!state.is_warned) state.is_warned = warn_of_scale(peak_of(made->floats()), context);
    const auto values = std::make_shared<const std::vector<std::byte>>(std::move(made->values));
    out->samples = {values, values->data(), static_cast<std::int64_t>(count), SampleType::float32};
    state.given += out->samples.count;
    return std::shared_ptr<const Waveform>(std::move(out));
  }

 private:
  [[nodiscard]] std::size_t block_bytes() const {
    return sizeof(float) * static_cast<std::size_t>(options().blocks.value_or(1));
  }
};

const RegisterStage<PythonBlocks, PythonOptions> register_blocks{"python_blocks",
                                                                 "python with blocks.", true};

}  // namespace
}  // namespace melflow
