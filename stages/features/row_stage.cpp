#include "stages/features/row_stage.h"

#include <algorithm>

#include <fmt/format.h>

#include "stages/facts.h"
#include "stages/row_type.h"

namespace melflow {

Requirements RowStage::require(const Requirements& below) const {
  Requirements above = below;
  require_rows(above, NumberType::float32);
  return above;
}

Properties RowStage::plan(const Properties& given, const Requirements&, PlanCheck& check) {
  in_ = given.get_or(property::kFeatures, nullptr);
  // The node before reports an error of its own.
  if (!in_ || refuse_integers(*in_, check)) return given;
  auto out = std::make_shared<FeatureInfo>(*in_);
  out->is_full_scale = false;
  step_ = make_step(*in_, *out, check);
  if (!step_) return given;
  if (in_->frames > 0 && in_->frames < least_frames())
    check.error("", fmt::format("needs {} frames, a segment has {}", least_frames(), in_->frames));
  out->columns = step_->values_out(in_->columns);
  if (out->columns != in_->columns) out->groups.clear();
  if (in_->frames > 0) out->frames = static_cast<int>(step_->rows_out(in_->frames));
  if (in_->frames_of)
    out->frames_of = [before = in_->frames_of, step = step_](std::int64_t samples) {
      const std::int64_t frames = before(samples);
      return frames > 0 ? step->rows_out(frames) : 0;
    };
  recordings_ = given.get_or(property::kFullBatch, FullBatch{1, 0}).files;
  out_ = out;
  Properties properties = given;
  properties.set(property::kFeatures, out_);
  if (const std::string name = resized_by(); !name.empty())
    properties.set(property::kResizedBy, name);
  return properties;
}

std::size_t RowStage::output_bound(const SourceInfo&, std::size_t input) const {
  const double wider =
      static_cast<double>(out_->values_per_row()) / static_cast<double>(in_->values_per_row());
  double bytes = static_cast<double>(input) * std::max(1.0, wider);
  if (in_->frames == 0 && step_->rows_out(1) != 1) {
    // Each recording may have rows beside those in proportion to its own.
    const auto all = static_cast<std::int64_t>(input / (in_->values_per_row() * sizeof(float)));
    const std::int64_t recordings = std::clamp<std::int64_t>(all, 1, recordings_);
    const std::int64_t rows = step_->rows_out(all / recordings + 1) + step_->rows_out(1) + 1;
    bytes = std::max(bytes, static_cast<double>(rows * recordings) *
                                static_cast<double>(out_->values_per_row() * sizeof(float)));
  }
  return BufferPool::rounded(static_cast<std::size_t>(bytes));
}

Result<std::shared_ptr<const MelBatch>> RowStage::process(std::shared_ptr<const MelBatch> in,
                                                          ItemContext& context) const {
  auto out = std::make_shared<MelBatch>();
  out->info = out_;
  out->parts.resize(in->parts.size());
  for (std::size_t i = 0; i < in->parts.size(); ++i) {
    if (!in->parts[i] || context.is_lost(i)) continue;
    auto part = changed(*in->parts[i], context.origin(i).stream->index(), context);
    if (part)
      out->parts[i] = std::move(*part);
    else
      context.fail(i, std::move(part.error()));
  }
  return std::shared_ptr<const MelBatch>(std::move(out));
}

std::optional<RecordingLength> RowStage::length_of(RecordingLength in) const {
  if (in_->frames > 0) return in;
  if (in.rows < least_frames()) return std::nullopt;
  in.rows = step_->rows_out(in.rows);
  return in;
}

Result<std::shared_ptr<const MelPart>> RowStage::changed(const MelPart& in, std::size_t recording,
                                                         ItemContext& context) const {
  const bool segments = in_->frames > 0;
  if (!segments && in.last) {
    std::int64_t frames = in.first_row + in.row_count;
    if (in.pending && frames > 0) frames = in.pending->rows_out(frames);
    if (frames < least_frames())
      return ItemError::skipped(
          fmt::format("has {} frames, {} are needed", frames, least_frames()));
  }
  auto chosen = step_for(recording);
  if (!chosen) return std::move(chosen.error());
  const std::shared_ptr<const FinishStep>& step = *chosen;
  auto out = std::make_shared<MelPart>(in);
  if (in.pending || (step->needs_utterance() && !segments && !in.is_whole())) {
    auto pending = std::make_shared<UtteranceSteps>(in.pending ? *in.pending : UtteranceSteps{});
    pending->add(step);
    if (!in.pending) out->pending_columns = in_->columns;
    out->pending = std::move(pending);
    return std::shared_ptr<const MelPart>(std::move(out));
  }
  const std::int64_t utterances = segments ? in.row_count : 1;
  const std::int64_t frames = segments ? in_->frames : in.row_count;
  const std::int64_t frames_out = frames > 0 ? step->rows_out(frames) : 0;
  if (!segments) out->row_count = frames_out;
  auto buffer = std::make_shared<Buffer>(context.run().pool.lease(
      static_cast<std::size_t>(out->row_count) * out_->values_per_row() * sizeof(float)));
  for (std::int64_t u = 0; u < utterances && frames > 0; ++u) {
    // It is only read.
    auto* from = const_cast<float*>(in.values()) + u * frames * in_->columns;
    const MemoryRows rows(from, frames, in_->columns);
    MemoryRows result(buffer->as<float>() + u * frames_out * out_->columns, frames_out,
                      out_->columns);
    step->run(rows, result);
  }
  if (auto error =
          unstorable(buffer->as<float>(), in.first_row, out->row_count, *out_, NumberType::float32))
    return std::move(*error);
  out->data = std::move(buffer);
  return std::shared_ptr<const MelPart>(std::move(out));
}

}  // namespace melflow
