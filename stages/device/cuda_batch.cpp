#include "stages/device/cuda_batch.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "cuda/error.h"

namespace melflow {
namespace {

// What is put into a lane begins at such a multiple of samples, so that frames are as well aligned
// there as they are in the part. It takes whole multiples, too: what a batch sends does not depend
// on which of its parts comes last.
constexpr std::size_t kPartAlignment = 8;

}  // namespace

CudaBatch::CudaBatch(std::shared_ptr<const Batch> batch, const MelFront& front,
                     cuda::Lanes::Lease lane, Scratch& scratch, ItemContext& context)
    : batch_(std::move(batch)),
      lane_(std::move(lane)),
      frame_bytes_(static_cast<std::size_t>(front.mel_plan()->columns()) *
                   size_of(front.row_type())),
      parts_(batch_->parts.size()) {
  const auto is_narrow = [](const auto& part) { return part->samples.type == SampleType::int16; };
  is_raw_ = takes_plain_samples(*front.mel_plan()) || is_conditioned_by_frame(*front.mel_plan());
  if (!is_raw_ || !std::all_of(batch_->parts.begin(), batch_->parts.end(), is_narrow))
    type_ = cuda::SampleType::float32;
  // Counted first, so that the lane's memory changes only while nothing is in it.
  is_counting_ = true;
  pack_parts(front, scratch, context);
  is_counting_ = false;
  if (n_frames_ > 0) lane_->reserve(sample_bytes_, n_frames_);
  sample_bytes_ = n_frames_ = 0;
  pack_parts(front, scratch, context);
  if (n_frames_ > 0)
    lane_->submit(type_, sample_bytes_, n_frames_);
  else
    lane_.reset();
}

void CudaBatch::pack_parts(const MelFront& front, Scratch& scratch, ItemContext& context) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (context.origin(i).stream->failed()) continue;
    const Windows& in = *batch_->parts[i];
    if (auto error = front.refusal(in)) {
      context.fail(i, std::move(*error));
      continue;
    }
    Part& part = parts_[i];
    if (is_counting_) {
      part.rows = std::make_shared<MelPart>();
      part.rows->last = in.last;
      part.rows->file = in.file;
    }
    // A stream may fail elsewhere in between, but not come back.
    part.first_frame = n_frames_;
    const std::uint64_t noise_key = front.noise_key(i, context);
    in.samples.type == SampleType::int16 ? pack<std::int16_t>(in, front, noise_key, scratch, part)
                                         : pack<float>(in, front, noise_key, scratch, part);
    part.n_frames = n_frames_ - part.first_frame;
    if (!in.grid && part.rows->row_count == 0 && in.last && part.rows->first_row == 0) {
      context.fail(i, front.too_short(in));
      part.rows.reset();
    }
  }
}

CudaBatch::~CudaBatch() {
  // Dropped on the way, because its files failed elsewhere: the device may still be at it.
  if (lane_) lane_->finish();
}

std::size_t CudaBatch::row_count() const {
  std::size_t n = 0;
  for (const Part& part : parts_)
    if (part.rows) n += static_cast<std::size_t>(part.rows->row_count);
  return n;
}

std::uint32_t CudaBatch::room(std::int64_t count) {
  const std::size_t size = cuda::bytes_of(type_);
  const std::size_t begin = sample_bytes_ / size;
  const std::size_t end = begin + (static_cast<std::size_t>(count) + kPartAlignment - 1) /
                                      kPartAlignment * kPartAlignment;
  if (end > std::numeric_limits<std::uint32_t>::max())
    throw cuda::CudaError("a batch of more than 2^32 samples; lower mel.accumulate.bytes");
  sample_bytes_ = end * size;
  return static_cast<std::uint32_t>(begin);
}

template <class Sample>
void CudaBatch::put(std::uint32_t place, const Sample* samples, std::int64_t count) {
  if (is_counting_) return;
  std::byte* to = lane_->samples() + place * cuda::bytes_of(type_);
  if ((type_ == cuda::SampleType::int16) == (sizeof(Sample) == 2)) {
    std::memcpy(to, samples, static_cast<std::size_t>(count) * sizeof(Sample));
  } else {
    // int16 among floats: the same values.
    auto* values = reinterpret_cast<float*>(to);
    for (std::int64_t i = 0; i < count; ++i)
      values[i] = static_cast<float>(samples[i]) * kInt16Scale;
  }
}

void CudaBatch::put_offset(std::uint32_t offset) {
  if (n_frames_ == std::numeric_limits<std::uint32_t>::max())
    throw cuda::CudaError("a batch of more than 2^32 frames; lower mel.accumulate.bytes");
  if (!is_counting_) lane_->offsets()[n_frames_] = offset;
  ++n_frames_;
}

template <class Sample>
void CudaBatch::put_raw_frame(std::uint32_t place, const SignalView<Sample>& view,
                              std::int64_t start, const MelPlan& plan, Scratch& scratch) {
  const std::int64_t length = plan.frame_length();
  scratch.frame_.resize(static_cast<std::size_t>(length) * sizeof(Sample));
  auto* samples = reinterpret_cast<Sample*>(scratch.frame_.data());
  gather(view, start, length, plan.options().pad_mode, samples);
  put(place, samples, length);
}

// Frames [from, from + count) of the unit; `place`: where the view's samples lie in the lane.
template <class Sample>
void CudaBatch::pack_frames(const SignalView<Sample>& view, std::int64_t from, std::int64_t count,
                            std::optional<std::uint32_t> place, const MelFront& front,
                            Scratch& scratch, Part& out) {
  const MelPlan& plan = *front.mel_plan();
  const std::int64_t length = plan.frame_length();
  const bool has_energy = plan.energy_column() >= 0;
  const std::int64_t end = view.length >= 0 ? std::min(view.end, view.length) : view.end;
  for (std::int64_t t = from; t < from + count; ++t) {
    const std::int64_t start = plan.start(t);
    const bool lies_there = place && start >= view.begin && start + length <= end;
    if (is_counting_) {
      put_offset(lies_there ? 0 : room(length));
      continue;
    }
    const void* conditioned = nullptr;
    if (has_energy || !is_raw_) {
      float energy = 0;
      conditioned = front.kernel().frame(view, t, scratch.kernel_, energy);
      if (has_energy) out.energies.push_back(energy);
    }
    if (!lies_there) {
      const std::uint32_t at = room(length);
      is_raw_ ? put_raw_frame(at, view, start, plan, scratch)
              : put(at, static_cast<const float*>(conditioned), length);
      put_offset(at);
      continue;
    }
    put_offset(*place + static_cast<std::uint32_t>(start - view.begin));
  }
}

template <class Sample>
void CudaBatch::pack(const Windows& in, const MelFront& front, std::uint64_t noise_key,
                     Scratch& scratch, Part& out) {
  const auto* samples = reinterpret_cast<const Sample*>(in.samples.data);
  std::optional<std::uint32_t> place;
  if (is_raw_ && in.samples.count > 0) {
    place = room(in.samples.count);
    put(*place, samples, in.samples.count);
  }
  if (!in.grid) {
    front.ready_frames(in, *out.rows);
    const SignalView<Sample> view{samples,   in.begin, in.end(), in.last ? in.end() : -1,
                                  noise_key, 0};
    return pack_frames(view, out.rows->first_row, out.rows->row_count, place, front, scratch, out);
  }
  const std::int64_t frames = front.mel_plan()->frames(in.grid->length);
  out.rows->first_row = in.first_row;
  out.rows->row_count = in.row_count;
  for_each_window<Sample>(in, noise_key, scratch.windows_,
                          [&](const SignalView<Sample>& view, std::int64_t, bool is_padded) {
                            std::optional<std::uint32_t> at;
                            if (place && !is_padded)
                              at = *place + static_cast<std::uint32_t>(view.data - samples);
                            pack_frames(view, 0, frames, at, front, scratch, out);
                          });
  out.same_as = scratch.windows_.same_as();
}

// Of a part's windows, those that were computed come out of the lane one after another.
void CudaBatch::copy_rows(const Part& part, std::size_t row_bytes, std::byte* to) const {
  if (part.n_frames == 0) return;  // a block that completes no frame
  const std::byte* from = lane_->rows() + part.first_frame * frame_bytes_;
  if (part.same_as.empty()) {
    std::memcpy(to, from, part.n_frames * frame_bytes_);
    return;
  }
  for (std::size_t r = 0; r < part.same_as.size(); ++r) {
    if (part.same_as[r] >= 0) continue;
    std::memcpy(to + r * row_bytes, from, row_bytes);
    from += row_bytes;
  }
}

// What the device leaves for the host to fill.
void CudaBatch::put_energies(const Part& part, const MelFront& front, std::byte* rows) {
  const FeatureInfo& info = *front.info();
  if (info.energy_column < 0) return;
  const std::size_t size = size_of(front.row_type());
  const std::size_t frame_bytes = static_cast<std::size_t>(info.columns) * size;
  const std::size_t frames_of_row = info.values_per_row() / static_cast<std::size_t>(info.columns);
  std::byte* frame = rows + static_cast<std::size_t>(info.energy_column) * size;
  std::size_t next = 0;
  for (std::size_t r = 0; r < static_cast<std::size_t>(part.rows->row_count); ++r) {
    const bool is_copy = !part.same_as.empty() && part.same_as[r] >= 0;
    for (std::size_t t = 0; t < frames_of_row; ++t, frame += frame_bytes)
      if (!is_copy) from_float({&part.energies[next++], 1}, front.row_type(), frame);
  }
}

std::shared_ptr<const MelBatch> CudaBatch::rows(const MelFront& front, ItemContext& context) const {
  const std::size_t row_bytes = front.info()->values_per_row() * size_of(front.row_type());
  auto out = std::make_shared<MelBatch>();
  out->info = front.info();
  out->parts.resize(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    if (!part.rows || context.origin(i).stream->failed()) continue;
    auto finished = std::make_shared<MelPart>(*part.rows);
    auto buffer = std::make_shared<Buffer>(
        context.run().pool.lease(static_cast<std::size_t>(finished->row_count) * row_bytes));
    std::byte* rows = buffer->data();
    finished->data = std::move(buffer);
    finished->type = front.row_type();
    copy_rows(part, row_bytes, rows);
    put_energies(part, front, rows);
    const Windows& in = *batch_->parts[i];
    if (in.grid)
      front.finish_windows(part.same_as, rows);
    else
      front.finish_whole(in, rows, *finished);
    if (auto error = front.damage(in, *finished)) {
      context.fail(i, std::move(*error));
      continue;
    }
    out->parts[i] = std::move(finished);
  }
  return out;
}

}  // namespace melflow
