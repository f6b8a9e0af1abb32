// fingerprint: makes rows of 32 bits that are alike where recordings sound alike.
//
// In:  Windows, of whole recordings at 4000 Hz.
// Out: MelBatch of one part, int32 [rows, 1]: words.h.

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/fingerprint/words.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/node_group.h"

namespace melflow {
namespace {

using fingerprint::kHop;
using fingerprint::kRate;
using fingerprint::kSpan;

class Fingerprint final : public Transform<Windows, MelBatch>, public TellsLength {
 public:
  explicit Fingerprint(NoOptions) {}

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.erase(requirement::kRowTypes);  // there are no rows before this stage
    above.set(requirement::kSampleRate, static_cast<double>(kRate));
    above.set(requirement::kContext, static_cast<std::int64_t>(kSpan));
    return above;
  }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    const auto rate = given.get(property::kSampleRate);
    if (rate && *rate != kRate)
      check.error("", fmt::format("takes samples at {} Hz, but the input has {} Hz; put a node "
                                  "{{stage: resample, rate: {}}} before it, on a branch of its own",
                                  kRate, *rate, kRate));
    if (given.get_or(property::kWindow, 0) > 0)
      check.error("",
                  "takes whole recordings, but they are cut into windows; take it from a node "
                  "before segment");
    auto info = std::make_shared<FeatureInfo>();
    info->name = kConcatRows;
    info->axis = "column";
    info->columns = 1;
    info->type = NumberType::int32;
    info->sample_rate = kRate;
    info->n_fft = fingerprint::kFrame;
    info->hop = kHop;
    info->unit = "bits";
    info->frames_of = fingerprint::words_of;
    *info->computed_by = {"cpu", "any", true};
    info_ = info;
    Properties out = given;
    out.set(property::kFeatures, info_);
    return out;
  }

  [[nodiscard]] std::optional<Value> settings() const override { return Value::map({}); }

  // int16, the smallest samples, make the most rows.
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    return BufferPool::rounded((input / 2 / kHop + 2) * sizeof(std::int32_t));
  }

  Result<std::shared_ptr<const MelBatch>> process(std::shared_ptr<const Windows> in,
                                                  ItemContext& context) const override {
    if (in->sample_rate != kRate)
      return ItemError::failed(
          fmt::format("is sampled at {} Hz, fingerprint takes {} Hz; put a resample stage before",
                      in->sample_rate, kRate));
    auto part = std::make_shared<MelPart>();
    part->type = NumberType::int32;
    part->last = in->last;
    part->file = in->file;
    part->first_row = in->first ? 0 : fingerprint::words_ready(in->fresh);
    const std::int64_t to =
        in->last ? fingerprint::words_of(in->end()) : fingerprint::words_ready(in->end());
    part->row_count = std::max<std::int64_t>(0, to - part->first_row);
    if (part->row_count == 0 && !in->last) return std::shared_ptr<const MelBatch>{};
    auto rows = std::make_shared<Buffer>(
        context.run().pool.lease(static_cast<std::size_t>(part->row_count) * sizeof(std::int32_t)));
    if (part->row_count > 0) {
      const std::int64_t skipped = part->first_row * kHop - in->begin;
      const std::int64_t there = in->samples.count - skipped;
      std::vector<float> converted;
      const float* samples = reinterpret_cast<const float*>(in->samples.data) + skipped;
      if (in->samples.type != SampleType::float32) {
        converted.resize(static_cast<std::size_t>(there));
        to_float(in->samples.data + static_cast<std::size_t>(skipped) * sizeof(std::int16_t),
                 converted.size(), NumberType::int16, converted.data());
        samples = converted.data();
      }
      kernel_.compute(samples, there, part->row_count, rows->as<std::int32_t>());
    }
    part->data = std::move(rows);
    auto out = std::make_shared<MelBatch>();
    out->info = info_;
    out->parts.push_back(std::move(part));
    return std::shared_ptr<const MelBatch>(std::move(out));
  }

  [[nodiscard]] std::optional<RecordingLength> length_of(RecordingLength in) const override {
    if (in.sample_rate != kRate) return std::nullopt;
    if (in.rows < 0) in.rows = fingerprint::words_of(in.samples);
    return in;
  }

 private:
  fingerprint::Kernel kernel_;
  std::shared_ptr<const FeatureInfo> info_;
};

const RegisterStage<Fingerprint, NoOptions> register_fingerprint{
    "fingerprint",
    "Makes 32 bits every 12.5 ms that stay alike through codecs, levels and resampling, for "
    "`melflow duplicates` (docs/duplicates.md).",
    true};

}  // namespace
}  // namespace melflow
