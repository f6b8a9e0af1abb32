// samples: makes rows of the samples themselves, for models that take waveforms.
//
// In:  Windows, of recordings that are cut or whole.
// Out: MelBatch of one part. Cut: a row is a window. Whole: a row is a sample, and the output
//      records where each recording begins.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <span>

#include "pipeline/base/near_names.h"
#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/front_end_nodes.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/row_type.h"
#include "stages/sample_rate.h"
#include "stages/sample_unit.h"

namespace melflow {
namespace {

/// The front end of a model that takes samples; null for none.
struct SamplesPreset {
  const FrontEnd* of = nullptr;
};

}  // namespace

template <>
struct OptionType<SamplesPreset> {
  static std::string name() { return "choice"; }
  static std::vector<std::string> choices() {
    std::vector<std::string> out{"none"};
    for (const FrontEnd& f : front_ends())
      if (f.sample_rate_of("samples") > 0) out.emplace_back(f.name);
    return out;
  }
  static std::string parse(const Value& v, SamplesPreset& out) {
    const std::vector<std::string> all = choices();
    if (!v.is_null() && std::find(all.begin(), all.end(), v.text()) == all.end())
      return fmt::format("{} {}", detail::describe_value(v),
                         not_one_of(v.text(), all, "`melflow stages --presets`"));
    out.of = find_front_end(v.text());
    return {};
  }
  static Value echo(const SamplesPreset& p) {
    return p.of != nullptr ? Value::scalar(std::string(p.of->name)) : Value{};
  }
};

namespace {

struct SamplesOptions {
  SamplesPreset preset;
  std::optional<SampleRate> sample_rate;

  void describe(Schema& s) {
    s.field("preset", preset,
            "front end of a known model that takes samples: sets sample_rate, and the nodes before "
            "this one that normalise the samples or fit their number (docs/features.md); not set "
            "or none: none")
        .implies([this] {
          if (preset.of != nullptr) sample_rate = preset.of->sample_rate_of("samples");
        })
        .tuning();
    s.field("sample_rate", sample_rate,
            "sample rate that recordings must have [Hz]; others fail; not set: the rate of the "
            "resample stage before this one, or any rate")
        .range(100, 1'000'000);
  }
};

// Converts `count` samples to values of `type` at `out`.
void convert(const std::byte* samples, SampleType from, std::size_t count, NumberType type,
             std::byte* out) {
  if (from == SampleType::float32)
    return from_float({reinterpret_cast<const float*>(samples), count}, type, out);
  if (type == NumberType::int16) {
    std::memcpy(out, samples, count * sizeof(std::int16_t));
    return;
  }
  if (type == NumberType::float32)
    return to_float(samples, count, NumberType::int16, reinterpret_cast<float*>(out));
  std::array<float, 4096> piece;
  for (std::size_t done = 0; done < count; done += piece.size()) {
    const std::size_t n = std::min(piece.size(), count - done);
    to_float(samples + done * sizeof(std::int16_t), n, NumberType::int16, piece.data());
    from_float({piece.data(), n}, type, out + done * size_of(type));
  }
}

class SampleRows final : public Transform<Windows, MelBatch>, public TellsLength {
 public:
  explicit SampleRows(SamplesOptions options) : options_(options) {}

  static std::vector<NodeSpec> expand(const NodeSpec& spec) {
    return front_end_nodes(spec, "samples", {spec});
  }

  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    above.erase(requirement::kRowTypes);  // there are no rows before this stage
    if (options_.sample_rate) above.set(requirement::kSampleRate, options_.sample_rate->hz);
    return above;
  }

  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    const auto given_rate = given.get(property::kSampleRate);
    const double rate = options_.sample_rate ? options_.sample_rate->hz : given_rate.value_or(0);
    if (given_rate && *given_rate != rate)
      check.error(
          "sample_rate",
          fmt::format("{} Hz, but the input has {} Hz; resample it to {} Hz, or change this", rate,
                      *given_rate, rate));
    window_ = given.get_or(property::kWindow, 0);
    rows_per_sample_ = given.get_or(property::kRowsPerSample, 1);
    rows_extra_ = given.get_or(property::kRowsExtra, 0);
    type_ = required_rows(required);
    if (window_ > std::numeric_limits<int>::max())
      check.error("", fmt::format("a window of {} samples is too long for a row", window_));
    auto info = std::make_shared<FeatureInfo>();
    info->name = window_ > 0 ? kWindowRows : kWaveformRows;
    info->frames = static_cast<int>(window_);
    info->columns = 1;
    info->axis = "";
    info->is_full_scale = !given.get(property::kSampleUnit);
    info->unit = given.get_or(property::kSampleUnit, "full scale");
    info->sample_rate = static_cast<int>(rate);
    info->hop = 1;
    *info->computed_by = {"cpu", "any", true};
    info_ = info;
    Properties out = given;
    out.set(property::kFeatures, info_);
    return out;
  }

  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t input) const override {
    const auto samples = static_cast<double>(input) / 2;  // int16, or half as many floats
    const double rows = samples * rows_per_sample_ + rows_extra_;
    return BufferPool::rounded(static_cast<std::size_t>(rows) * info_->values_per_row() *
                               size_of(type_));
  }

  Result<std::shared_ptr<const MelBatch>> process(std::shared_ptr<const Windows> in,
                                                  ItemContext& context) const override {
    if (const int rate = info_->sample_rate; rate > 0 && in->sample_rate != rate)
      return ItemError::failed(
          fmt::format("is sampled at {} Hz, samples.sample_rate is {}; put a resample stage "
                      "before, or leave such files out",
                      in->sample_rate, rate));
    const std::int64_t begin = in->fresh - in->begin;  // after those of earlier blocks
    if (auto error = damage(*in, begin)) return std::move(*error);
    auto part = std::make_shared<MelPart>();
    part->type = type_;
    part->last = in->last;
    part->file = in->file;
    part->first_row = in->grid ? in->first_row : in->fresh;
    part->row_count = in->grid ? in->row_count : in->samples.count - begin;
    const std::size_t row_bytes = info_->values_per_row() * size_of(type_);
    auto rows = std::make_shared<Buffer>(
        context.run().pool.lease(static_cast<std::size_t>(part->row_count) * row_bytes));
    if (in->grid)
      for (std::int64_t r = 0; r < part->row_count; ++r)
        put(*in, in->grid->start(part->first_row + r) - in->begin, window_,
            rows->data() + static_cast<std::size_t>(r) * row_bytes);
    else
      put(*in, begin, part->row_count, rows->data());
    part->data = std::move(rows);
    auto out = std::make_shared<MelBatch>();
    out->info = info_;
    out->parts.push_back(std::move(part));
    return std::shared_ptr<const MelBatch>(std::move(out));
  }

  [[nodiscard]] std::optional<RecordingLength> length_of(RecordingLength in) const override {
    if (info_->sample_rate > 0 && in.sample_rate != info_->sample_rate) return std::nullopt;
    if (in.rows < 0) in.rows = in.samples;
    return in;
  }

  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    if (clipped_ == 0) return {};
    return {{"clipped_samples", Value::scalar(std::to_string(clipped_.load()))}};
  }

 private:
  // Writes samples [from, from + count) of the block, and silence after its end.
  void put(const Windows& in, std::int64_t from, std::int64_t count, std::byte* out) const {
    const std::int64_t there = std::clamp<std::int64_t>(in.samples.count - from, 0, count);
    convert(in.samples.data + static_cast<std::size_t>(from) * size_of(in.samples.type),
            in.samples.type, static_cast<std::size_t>(there), type_, out);
    const std::size_t bytes = static_cast<std::size_t>(there) * size_of(type_);
    std::memset(out + bytes, 0, static_cast<std::size_t>(count) * size_of(type_) - bytes);
  }

  // Checks the block's samples from number `from` on. Decoders of lossy formats slightly exceed
  // full scale; such samples are clipped and counted.
  [[nodiscard]] std::optional<ItemError> damage(const Windows& in, std::int64_t from) const {
    if (in.samples.type != SampleType::float32) return std::nullopt;
    const std::span<const float> values(reinterpret_cast<const float*>(in.samples.data) + from,
                                        static_cast<std::size_t>(in.samples.count - from));
    constexpr float kFullScale = 1;
    if (first_beyond(values, kFullScale) < 0) return std::nullopt;  // in most cases
    const std::int64_t at =
        first_not_finite(values.data(), values.size(), NumberType::float32, type_);
    if (at >= 0) {
      const std::int64_t sample = in.fresh + at;
      return ItemError::failed(fmt::format("sample {} (at {:.3f} s) is {:g}, {} ends at {:g}",
                                           sample, static_cast<double>(sample) / in.sample_rate,
                                           values[static_cast<std::size_t>(at)], to_text(type_),
                                           greatest_of(type_)));
    }
    if (type_ == NumberType::int16)
      clipped_.fetch_add(std::count_if(values.begin(), values.end(),
                                       [](float v) { return v > kFullScale || v < -kFullScale; }),
                         std::memory_order_relaxed);
    return std::nullopt;
  }

  SamplesOptions options_;
  std::shared_ptr<const FeatureInfo> info_;
  std::int64_t window_ = 0;  // samples of a row; 0: recordings are whole
  double rows_per_sample_ = 1, rows_extra_ = 0;
  NumberType type_ = NumberType::float32;
  mutable std::atomic<std::int64_t> clipped_{0};
};

const RegisterStage<SampleRows, SamplesOptions> register_sample_rows{
    "samples",
    "Makes rows of raw samples: a row for every window or, where recordings are not cut, for every "
    "sample.",
    true};

}  // namespace
}  // namespace melflow
