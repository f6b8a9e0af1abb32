#include "stages/device/cuda_batch.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "cuda/error.h"
#include "stages/device/slot_load.h"

namespace melflow {

CudaBatch::CudaBatch(std::shared_ptr<const Batch> batch, const MelFront& front,
                     cuda::SlotPool& slots, const SplitDevices& devices, Scratch& scratch,
                     ItemContext& context)
    : batch_(std::move(batch)),
      is_raw_(goes_raw(*front.mel_plan())),
      frame_bytes_(static_cast<std::size_t>(front.mel_plan()->columns()) *
                   size_of(front.row_type())),
      parts_(batch_->parts.size()) {
  count_parts(front, scratch, context);
  const std::vector<Piece> all = pieces(slots.size(), devices, context);
  for (const Piece& piece : all) {
    if (piece.n_frames == 0) continue;
    run(piece, &piece == &all.back(), front, slots, scratch, context);
  }
}

CudaBatch::CudaBatch(std::shared_ptr<const Batch> batch)
    : batch_(std::move(batch)), is_on_host_(true), sample_bytes_(batch_->bytes()) {}

CudaBatch::~CudaBatch() {
  // The batch was dropped because its files failed elsewhere; the device may still be using it.
  if (slot_) slot_->finish();
}

// Computes the space of every part, before anything is packed.
void CudaBatch::count_parts(const MelFront& front, Scratch& scratch, ItemContext& context) {
  is_counting_ = true;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (context.is_lost(i)) continue;
    const Windows& in = *batch_->parts[i];
    if (auto error = front.refusal(in)) {
      context.fail(i, std::move(*error));
      continue;
    }
    Part& part = parts_[i];
    if (is_raw_ && in.samples.type == SampleType::int16) part.type = cuda::SampleType::int16;
    part.rows = std::make_shared<MelPart>();
    part.rows->last = in.last;
    part.rows->file = in.file;
    piece_ = {};
    n_samples_ = 0;
    n_frames_ = 0;
    pack_part(i, front, scratch, context);
    part.n_samples = n_samples_;
    part.n_frames = n_frames_;
    if (!in.grid && part.rows->row_count == 0 && in.last && part.rows->first_row == 0) {
      context.fail(i, front.too_short(in));
      part.rows.reset();
    }
  }
  is_counting_ = false;
}

CudaBatch::Piece CudaBatch::joined(Piece piece, const Part& part) {
  ++piece.end;
  if (!part.rows || part.n_frames == 0) return piece;
  if (part.type == cuda::SampleType::float32) piece.type = part.type;
  if (part.rows->last) ++piece.n_files;
  piece.n_samples += part.n_samples;
  piece.n_frames += part.n_frames;
  return piece;
}

std::vector<CudaBatch::Piece> CudaBatch::pieces(const cuda::SlotSize& size,
                                                const SplitDevices& devices, ItemContext& context) {
  const auto fits = [&size](const Piece& p) {
    return p.sample_bytes() <= size.sample_bytes && p.n_frames <= size.frames &&
           p.n_samples <= std::numeric_limits<std::uint32_t>::max();  // the largest position
  };
  std::vector<Piece> out;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Piece alone;
    alone.first = alone.end = i;
    alone.on = devices.of(context.origin(i).stream->index());
    alone = joined(alone, parts_[i]);
    if (!fits(alone)) {
      context.fail(i, ItemError::failed(fmt::format(
                          "a block of {} samples and {} frames does not fit into a slot of {} "
                          "bytes and {} frames; raise mel.accumulate.bytes",
                          alone.n_samples, alone.n_frames, size.sample_bytes, size.frames)));
      parts_[i].rows.reset();
    }
    if (!out.empty() && out.back().on.data() == alone.on.data()) {
      if (const Piece longer = joined(out.back(), parts_[i]); fits(longer)) {
        out.back() = longer;
        continue;
      }
    }
    out.push_back(alone);
  }
  return out;
}

void CudaBatch::run(const Piece& piece, bool is_last, const MelFront& front, cuda::SlotPool& slots,
                    Scratch& scratch, ItemContext& context) {
  try {
    piece_ = piece;
    slot_ = slots.take(piece.on);
    pack_piece(front, scratch, context);
    if (n_frames_ > 0)
      slot_->submit(piece_.type, static_cast<std::size_t>(n_samples_) * cuda::bytes_of(piece_.type),
                    static_cast<std::uint32_t>(n_frames_), piece_.n_files);
    sample_bytes_ += static_cast<std::size_t>(n_samples_) * cuda::bytes_of(piece_.type);
    row_bytes_ += n_frames_ * frame_bytes_;
    if (is_last && n_frames_ > 0) return;
    if (n_frames_ > 0) slot_->wait();
    for (std::size_t i = piece.first; i < piece.end; ++i)
      if (parts_[i].rows) parts_[i].data = take_rows(parts_[i], front, context);
  } catch (const cuda::CudaError& e) {
    for (std::size_t i = piece.first; i < piece.end; ++i) {
      if (!parts_[i].rows) continue;
      context.fail(i, ItemError::failed(e.what()));
      parts_[i].rows.reset();
    }
  }
  slot_.reset();
}

// A stream may fail elsewhere after it was counted, but does not recover, so never more is packed
// than was counted.
void CudaBatch::pack_piece(const MelFront& front, Scratch& scratch, ItemContext& context) {
  n_samples_ = 0;
  n_frames_ = 0;
  for (std::size_t i = piece_.first; i < piece_.end; ++i) {
    Part& part = parts_[i];
    part.first_frame = n_frames_;
    if (part.rows && context.is_lost(i)) part.rows.reset();
    if (part.rows && part.n_frames > 0) pack_part(i, front, scratch, context);
  }
}

void CudaBatch::pack_part(std::size_t i, const MelFront& front, Scratch& scratch,
                          ItemContext& context) {
  const Windows& in = *batch_->parts[i];
  const std::uint64_t noise_key = front.noise_key(i, context);
  in.samples.type == SampleType::int16
      ? pack<std::int16_t>(in, front, noise_key, scratch, parts_[i])
      : pack<float>(in, front, noise_key, scratch, parts_[i]);
}

std::size_t CudaBatch::row_count() const {
  std::size_t n = 0;
  for (const Part& part : parts_)
    if (part.rows) n += static_cast<std::size_t>(part.rows->row_count);
  return n;
}

std::uint32_t CudaBatch::room(std::int64_t count) {
  const std::int64_t begin = n_samples_;
  n_samples_ += padded_count(count);
  return static_cast<std::uint32_t>(begin);
}

template <class Sample>
void CudaBatch::put(std::uint32_t place, const Sample* samples, std::int64_t count) {
  if (is_counting_) return;
  std::byte* to = slot_->samples() + place * cuda::bytes_of(piece_.type);
  if ((piece_.type == cuda::SampleType::int16) == (sizeof(Sample) == 2)) {
    std::memcpy(to, samples, static_cast<std::size_t>(count) * sizeof(Sample));
  } else {
    // int16 samples among floats become floats of the same value.
    auto* values = reinterpret_cast<float*>(to);
    for (std::int64_t i = 0; i < count; ++i)
      values[i] = static_cast<float>(samples[i]) * kInt16Scale;
  }
}

void CudaBatch::put_offset(std::uint32_t offset) {
  if (!is_counting_) slot_->offsets()[n_frames_] = offset;
  ++n_frames_;
}

template <class Sample>
void CudaBatch::put_raw_frame(std::uint32_t place, const SignalView<Sample>& view,
                              std::int64_t start, const MelPlan& plan, Scratch& scratch) {
  const std::int64_t length = plan.frame_length();
  scratch.frame_.resize(static_cast<std::size_t>(length) * sizeof(Sample));
  auto* samples = reinterpret_cast<Sample*>(scratch.frame_.data());
  gather(view, start, length, plan, samples);
  put(place, samples, length);
}

// Packs frames [from, from + count) of the utterance; `place`: the view's samples in the slot.
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

// The slot has the computed ones of a part's windows, one after another.
std::shared_ptr<Buffer> CudaBatch::take_rows(const Part& part, const MelFront& front,
                                             ItemContext& context) const {
  const std::size_t row_bytes = front.info()->values_per_row() * size_of(front.row_type());
  auto out = std::make_shared<Buffer>(
      context.run().pool.lease(static_cast<std::size_t>(part.rows->row_count) * row_bytes));
  if (part.n_frames == 0) return out;  // a block that completes no frame
  const std::byte* from = slot_->rows() + part.first_frame * frame_bytes_;
  if (part.same_as.empty()) {
    std::memcpy(out->data(), from, part.n_frames * frame_bytes_);
    return out;
  }
  for (std::size_t r = 0; r < part.same_as.size(); ++r) {
    if (part.same_as[r] >= 0) continue;
    std::memcpy(out->data() + r * row_bytes, from, row_bytes);
    from += row_bytes;
  }
  return out;
}

// Fills in the energies, which the device leaves to the host.
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
  auto out = std::make_shared<MelBatch>();
  out->info = front.info();
  out->parts.resize(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    if (!part.rows || context.is_lost(i)) continue;
    auto finished = std::make_shared<MelPart>(*part.rows);
    const std::shared_ptr<Buffer> buffer = part.data ? part.data : take_rows(part, front, context);
    std::byte* rows = buffer->data();
    finished->data = buffer;
    finished->type = front.row_type();
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
