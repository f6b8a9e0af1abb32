#include "tests/support/host_driver.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "cuda/any_size_phases.h"
#include "cuda/condition_phases.h"
#include "cuda/fused_phases.h"

namespace melflow::cuda {
namespace {

constexpr int warp = 32;

template <class Phase>
void all_lanes(LaneOrder order, const Phase& phase) {
  for (int i = 0; i < warp; ++i) phase(order == LaneOrder::up ? i : warp - 1 - i);
}

template <class S, class Sample, NumberType operands>
void run_shape(const FusedTables& tables, const HostBatch& batch, const Rows& rows,
               LaneOrder order) {
  using F = Fused<S, Sample, operands>;
  constexpr bool is_int16 = sizeof(Sample) == sizeof(std::int16_t);
  const Settings& s = tables.settings;
  const FusedView view = tables.view(is_int16 ? SampleType::int16 : SampleType::float32);
  const BandView bands = tables.bands.view();
  const auto* samples = static_cast<const Sample*>(batch.samples);
  const std::size_t floats = tables.bytes_of_frame(operands) / sizeof(float);

  std::vector<typename F::Lane> lanes(warp);
  // A device does not clear it either; NaN shows whatever is read before it is written.
  std::vector<std::vector<float>> memory(
      S::frames, std::vector<float>(floats, std::numeric_limits<float>::quiet_NaN()));
  // The lane within its frame, its state, its frame's shared memory and the frame's place.
  const auto phase = [&](std::size_t base, const auto& run) {
    all_lanes(order, [&](int lane) {
      const auto group = static_cast<std::size_t>(lane / S::lanes);
      const typename F::Shared shared{memory[group].data()};
      run(lane % S::lanes, lanes[static_cast<std::size_t>(lane)], shared, base + group);
    });
  };
  for (std::size_t base = 0; base < batch.n_frames; base += S::frames) {
    phase(base, [&](int lane, auto& state, const auto& shared, std::size_t frame) {
      F::start(lane, view, state);
      F::fetch(lane, s, samples, batch.offsets[std::min(frame, batch.n_frames - 1)], state);
      F::first(lane, shared, state);
    });
    phase(base, [&](int lane, auto& state, const auto& shared, std::size_t) {
      F::middle_load(lane, shared, state);
    });
    phase(base, [&](int lane, auto& state, const auto& shared, std::size_t) {
      F::middle_store(lane, shared, state);
    });
    phase(base, [&](int lane, auto& state, const auto& shared, std::size_t) {
      F::last(lane, shared, state);
    });
    phase(base, [&](int lane, auto& state, const auto& shared, std::size_t) {
      F::store_power(lane, s, shared, state);
    });
    if (has_exponent(s)) {
      phase(base, [&](int lane, auto&, const auto& shared, std::size_t) {
        F::exponent(lane, s, shared);
      });
    }
    if (s.is_mel) {
      phase(base, [&](int lane, auto&, const auto& shared, std::size_t) {
        F::sum_bands(lane, s, bands, shared);
      });
    }
    phase(base, [&](int lane, auto&, const auto& shared, std::size_t frame) {
      if (frame < batch.n_frames) F::write(lane, s, bands, shared, rows, frame);
    });
  }
}

template <class S, class Sample>
void run_operands(const FusedTables& tables, NumberType operands, const HostBatch& batch,
                  const Rows& rows, LaneOrder order) {
  switch (operands) {
    case NumberType::float32:
      return run_shape<S, Sample, NumberType::float32>(tables, batch, rows, order);
    case NumberType::float16:
      return run_shape<S, Sample, NumberType::float16>(tables, batch, rows, order);
    case NumberType::bfloat16:
      return run_shape<S, Sample, NumberType::bfloat16>(tables, batch, rows, order);
    case NumberType::int16:  // of samples only
      break;
  }
}

template <class S>
void run_samples(const FusedTables& tables, NumberType operands, const HostBatch& batch,
                 const Rows& rows, LaneOrder order) {
  if (batch.sample_type == SampleType::int16)
    run_operands<S, std::int16_t>(tables, operands, batch, rows, order);
  else
    run_operands<S, float>(tables, operands, batch, rows, order);
}

}  // namespace

void run_fused(const FusedTables& tables, NumberType operands, const HostBatch& batch,
               const Rows& rows, LaneOrder order) {
  switch (tables.settings.n_fft) {
    case 256:
      return run_samples<Shape256>(tables, operands, batch, rows, order);
    case 400:
      return run_samples<Shape400>(tables, operands, batch, rows, order);
    case 512:
      return run_samples<Shape512>(tables, operands, batch, rows, order);
    case 1024:
      return run_samples<Shape1024>(tables, operands, batch, rows, order);
    case 2048:
      return run_samples<Shape2048>(tables, operands, batch, rows, order);
    default:
      throw std::invalid_argument("tables of a size that the fused kernel does not have");
  }
}

void run_condition(const ConditionSettings& s, const HostBatch& batch, float* frames,
                   std::uint32_t* offsets, LaneOrder order) {
  const auto stride = static_cast<std::size_t>(s.stride);
  const auto run = [&](const auto* samples, float* frame) {
    std::vector<double> sums(Condition::lanes, std::numeric_limits<double>::quiet_NaN());
    if (s.remove_dc)
      all_lanes(order, [&](int lane) { Condition::sum(lane, s, samples, sums.data()); });
    all_lanes(order, [&](int lane) { Condition::write(lane, s, samples, sums.data(), frame); });
  };
  for (std::size_t t = 0; t < batch.n_frames; ++t) {
    float* frame = frames + t * stride;
    if (batch.sample_type == SampleType::int16)
      run(static_cast<const std::int16_t*>(batch.samples) + batch.offsets[t], frame);
    else
      run(static_cast<const float*>(batch.samples) + batch.offsets[t], frame);
    offsets[t] = static_cast<std::uint32_t>(t * stride);
  }
}

void run_window(const AnySizeTables& tables, const HostBatch& batch, float* frames) {
  const Settings& s = tables.settings;
  for (std::size_t t = 0; t < batch.n_frames; ++t) {
    float* frame = frames + t * static_cast<std::size_t>(s.n_fft);
    all_lanes(LaneOrder::up, [&](int lane) {
      if (batch.sample_type == SampleType::int16)
        AnySize::window_frame(lane, s, tables.window_int16.data(),
                              static_cast<const std::int16_t*>(batch.samples) + batch.offsets[t],
                              frame);
      else
        AnySize::window_frame(lane, s, tables.window_float.data(),
                              static_cast<const float*>(batch.samples) + batch.offsets[t], frame);
    });
  }
}

void run_levels(const AnySizeTables& tables, const Complex* spectra, std::size_t n_frames,
                const Rows& rows, bool in_shared_memory, LaneOrder order) {
  const Settings& s = tables.settings;
  const BandView bands = tables.bands.view();
  const auto n_bins = static_cast<std::size_t>(s.n_bins);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> stored(n_bins, nan);
  std::vector<float> partials(static_cast<std::size_t>(tables.bands.counts().partials()), nan);
  for (std::size_t t = 0; t < n_frames; ++t) {
    const Bins bins{spectra + t * n_bins, in_shared_memory ? stored.data() : nullptr,
                    partials.data()};
    if (in_shared_memory) all_lanes(order, [&](int lane) { AnySize::load_bins(lane, s, bins); });
    if (s.is_mel) all_lanes(order, [&](int lane) { AnySize::sum_bands(lane, s, bands, bins); });
    all_lanes(order, [&](int lane) { AnySize::write(lane, s, bands, bins, rows, t); });
  }
}

}  // namespace melflow::cuda
