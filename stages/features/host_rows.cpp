#include "stages/features/host_rows.h"

#include <utility>

#include "stages/features/mel_windows.h"

namespace melflow {

struct HostRows::Scratch {
  explicit Scratch(MelKernel::Scratch k) : kernel(std::move(k)) {}
  MelKernel::Scratch kernel;
  WindowScratch windows;
};

namespace {

float* lease(std::size_t values, ItemContext& context, MelPart& out) {
  auto buffer = std::make_shared<Buffer>(context.run().pool.lease(values * sizeof(float)));
  auto* data = buffer->as<float>();
  out.data = std::move(buffer);
  return data;
}

}  // namespace

HostRows::HostRows(const MelFront& front) : front_(front) {}
HostRows::~HostRows() = default;

std::shared_ptr<const MelBatch> HostRows::compute(const Batch& in, ItemContext& context) const {
  auto out = std::make_shared<MelBatch>();
  out->info = front_.info();
  out->parts.resize(in.parts.size());
  const auto scratch =
      scratch_.lease([this] { return std::make_unique<Scratch>(front_.kernel().make_scratch()); });
  for (std::size_t i = 0; i < in.parts.size(); ++i) {
    if (context.is_lost(i)) continue;
    auto part = compute(*in.parts[i], i, *scratch, context);
    if (part)
      out->parts[i] = std::move(*part);
    else
      context.fail(i, std::move(part.error()));
  }
  return out;
}

template <class Sample>
void HostRows::windows(const Windows& in, std::uint64_t noise_key, Scratch& scratch,
                       ItemContext& context, MelPart& out) const {
  const MelKernel& kernel = front_.kernel();
  const std::size_t values = front_.info()->values_per_row();
  const std::int64_t frames = front_.mel_plan()->frames(in.grid->length);
  out.first_row = in.first_row;
  out.row_count = in.row_count;
  auto* rows = lease(static_cast<std::size_t>(in.row_count) * values, context, out);
  for_each_window<Sample>(
      in, noise_key, scratch.windows,
      [&](const SignalView<Sample>& view, std::int64_t row, bool is_padded) {
        kernel.add(view, 0, frames, rows + static_cast<std::size_t>(row) * values, scratch.kernel);
        if (is_padded) kernel.flush(scratch.kernel);
      });
  kernel.flush(scratch.kernel);
  front_.finish_windows(scratch.windows.same_as(), rows);
}

template <class Sample>
void HostRows::whole(const Windows& in, std::uint64_t noise_key, Scratch& scratch,
                     ItemContext& context, MelPart& out) const {
  front_.ready_frames(in, out);
  auto* rows = lease(static_cast<std::size_t>(out.row_count) * front_.info()->values_per_row(),
                     context, out);
  const SignalView<Sample> view{reinterpret_cast<const Sample*>(in.samples.data),
                                in.begin,
                                in.end(),
                                in.last ? in.end() : -1,
                                noise_key,
                                0};
  front_.kernel().frames(view, out.first_row, out.row_count, rows, scratch.kernel);
  front_.finish_whole(in, rows, out);
}

Result<std::shared_ptr<const MelPart>> HostRows::compute(const Windows& in, std::size_t part,
                                                         Scratch& scratch,
                                                         ItemContext& context) const {
  if (auto error = front_.refusal(in)) return std::move(*error);
  const std::uint64_t noise_key = front_.noise_key(part, context);
  auto out = std::make_shared<MelPart>();
  out->last = in.last;
  out->file = in.file;
  const bool int16 = in.samples.type == SampleType::int16;
  if (in.grid) {
    int16 ? windows<std::int16_t>(in, noise_key, scratch, context, *out)
          : windows<float>(in, noise_key, scratch, context, *out);
  } else {
    int16 ? whole<std::int16_t>(in, noise_key, scratch, context, *out)
          : whole<float>(in, noise_key, scratch, context, *out);
    if (out->row_count == 0 && in.last && out->first_row == 0) return front_.too_short(in);
  }
  if (auto error = front_.damage(in, *out)) return std::move(*error);
  return std::shared_ptr<const MelPart>(std::move(out));
}

}  // namespace melflow
