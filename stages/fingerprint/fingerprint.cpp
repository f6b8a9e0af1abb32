// fingerprint: makes rows of 32 bits that are alike where recordings sound alike.
//
// In:  Waveform blocks of whole recordings, of any rates from 4000 Hz on.
// Out: MelBatch of one part, int32 [rows, 1]: words.h.

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/features/mel_front.h"
#include "stages/fingerprint/words.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/node_group.h"

namespace melflow {
namespace {

using fingerprint::kLeastRate;

struct PrintState final : StageState {
  std::optional<fingerprint::WordStream> stream;
  std::int64_t rows = 0;  // given so far
};

std::string too_low(double rate) {
  return fmt::format(
      "{} Hz; fingerprints are of what is heard from 300 to 1800 Hz and take {} Hz "
      "or more",
      rate, kLeastRate);
}

class Fingerprint final : public StreamTransform<Waveform, MelBatch, PrintState>,
                          public TellsLength {
 public:
  explicit Fingerprint(NoOptions) {}

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.erase(requirement::kRowTypes);  // there are no rows before this stage
    return above;
  }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    const auto rate = given.get(property::kSampleRate);
    if (rate && *rate < kLeastRate) check.error("", "the input has " + too_low(*rate));
    instruction_set_ = chosen_instruction_set();
    auto info = std::make_shared<FeatureInfo>();
    info->name = kConcatRows;
    info->axis = "column";
    info->columns = 1;
    info->type = NumberType::int32;
    info->sample_rate = kLeastRate;
    info->n_fft = fingerprint::kFrame;
    info->hop = kLeastRate / fingerprint::kWordsASecond;
    info->unit = "bits";
    *info->computed_by = {"cpu", instruction_set_, true};
    info_ = info;
    Properties out = given;
    out.set(property::kFeatures, info_);
    return out;
  }

  [[nodiscard]] std::optional<Value> settings() const override { return Value::map({}); }

  // int16 at the lowest rate makes the most rows; some wait for a later block.
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    constexpr std::size_t kWaiting = 64;
    return BufferPool::rounded((input / 2 * fingerprint::kWordsASecond / kLeastRate + kWaiting) *
                               sizeof(std::int32_t));
  }

  Result<std::shared_ptr<const MelBatch>> process_block(std::shared_ptr<const Waveform> in,
                                                        PrintState& state,
                                                        ItemContext& context) const override {
    if (in->sample_rate < kLeastRate)
      return ItemError::failed("is sampled at " + too_low(in->sample_rate));
    if (!state.stream) state.stream.emplace(kernel_of(in->sample_rate));
    std::vector<std::int32_t> words;
    add(in->samples, in->last, *state.stream, words);
    if (words.empty() && !in->last) return std::shared_ptr<const MelBatch>{};
    auto part = std::make_shared<MelPart>();
    part->type = NumberType::int32;
    part->last = in->last;
    part->file = in->file;
    part->first_row = state.rows;
    part->row_count = static_cast<std::int64_t>(words.size());
    state.rows += part->row_count;
    const std::size_t bytes = words.size() * sizeof(std::int32_t);
    auto rows = std::make_shared<Buffer>(context.run().pool.lease(bytes));
    if (bytes > 0) std::memcpy(rows->data(), words.data(), bytes);
    part->data = std::move(rows);
    auto out = std::make_shared<MelBatch>();
    out->info = info_;
    out->parts.push_back(std::move(part));
    return std::shared_ptr<const MelBatch>(std::move(out));
  }

  [[nodiscard]] std::optional<RecordingLength> length_of(RecordingLength in) const override {
    if (in.sample_rate < kLeastRate) return std::nullopt;
    if (in.rows < 0) in.rows = fingerprint::words_of(in.samples, in.sample_rate);
    return in;
  }

 private:
  static void add(const Samples& samples, bool is_last, fingerprint::WordStream& stream,
                  std::vector<std::int32_t>& words) {
    if (samples.type == SampleType::float32)
      return stream.add(reinterpret_cast<const float*>(samples.data), samples.count, is_last,
                        words);
    constexpr std::int64_t kPiece = 4096;
    std::array<float, kPiece> converted;
    for (std::int64_t at = 0; at == 0 || at < samples.count; at += kPiece) {
      const std::int64_t n = std::min(kPiece, samples.count - at);
      if (n > 0)
        to_float(samples.data + static_cast<std::size_t>(at) * sizeof(std::int16_t),
                 static_cast<std::size_t>(n), NumberType::int16, converted.data());
      stream.add(converted.data(), n, is_last && at + kPiece >= samples.count, words);
    }
  }

  // Recordings of a corpus have few rates.
  [[nodiscard]] std::shared_ptr<const fingerprint::Kernel> kernel_of(int rate) const {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const fingerprint::Kernel>& kernel = kernels_[rate];
    if (!kernel) kernel = std::make_shared<const fingerprint::Kernel>(rate, instruction_set_);
    return kernel;
  }

  std::string instruction_set_;
  std::shared_ptr<const FeatureInfo> info_;
  mutable std::mutex mutex_;  // guards kernels_
  mutable std::map<int, std::shared_ptr<const fingerprint::Kernel>> kernels_;
};

const RegisterStage<Fingerprint, NoOptions> register_fingerprint{
    "fingerprint",
    "Makes 32 bits every 12.5 ms that stay alike through codecs, levels and resampling, for "
    "`melflow duplicates` (docs/duplicates.md).",
    true};

}  // namespace
}  // namespace melflow
