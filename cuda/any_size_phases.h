// any_size_phases.h - the kernels before and after a batched real transform of any size, as phases
// between barriers (see fused_phases.h). A warp works on one frame at a time.
//
//   window_frame   samples, window                     -> a frame of n_fft floats
//   (the transform: cuFFT; on the host any other)      -> a spectrum of n_bins complex numbers
//   load_bins      power, exponent                     -> shared, bins [n_bins]
//   sum_bands      pieces of bands                     -> partial sums
//   write          bands or bins, logarithm            -> row
//
// If a frame's bins do not fit into shared memory, load_bins is omitted, and the later phases
// compute each bin from the spectrum when they need it; partials are then in device memory.

#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/complex.h"
#include "cuda/host_device.h"
#include "cuda/levels.h"
#include "cuda/mel_tables.h"
#include "cuda/number_types.h"

namespace melflow::cuda {

// The source of the bins of one frame.
struct Bins {
  const Complex* spectrum = nullptr;  // [n_bins]
  float* stored = nullptr;            // [n_bins], null if they do not fit
  float* partials = nullptr;          // [BandCounts::partials()], aligned to 16 bytes

  MELFLOW_HD float value(const Settings& s, int k) const {
    return stored != nullptr ? stored[k] : bin_value(s, squared(spectrum[k]));
  }
};

struct AnySize {
  static constexpr int lanes = AnySizeTables::lanes;

  // The bins from number k on.
  struct From {
    const Settings& s;
    const Bins& bins;
    int k;
    MELFLOW_HD float operator[](int i) const { return bins.value(s, k + i); }
    MELFLOW_HD void operator+=(int n) { k += n; }
  };

  template <class Sample>
  static MELFLOW_HD void window_frame(int lane, const Settings& s, const float* window,
                                      const Sample* samples, float* frame) {
    for (int i = lane; i < s.frame_length; i += lanes)
      frame[i] = static_cast<float>(samples[i]) * window[i];
    for (int i = s.frame_length + lane; i < s.n_fft; i += lanes) frame[i] = 0.0F;
  }

  static MELFLOW_HD void load_bins(int lane, const Settings& s, const Bins& bins) {
    for (int k = lane; k < s.n_bins; k += lanes)
      bins.stored[k] = bin_value(s, squared(read_only(bins.spectrum + k)));
  }

  static MELFLOW_HD void sum_bands(int lane, const Settings& s, const BandView& bands,
                                   const Bins& bins) {
    sum_pieces<lanes, 1>(
        lane, bands,
        [&](int k) {
          return From{s, bins, k};
        },
        bins.partials);
  }

  static MELFLOW_HD void write(int lane, const Settings& s, const BandView& bands, const Bins& bins,
                               const Rows& rows, std::uint32_t row) {
    if (s.is_mel)
      write_bands<lanes, Sum>(lane, s, bands.counts, bins.partials, rows.at(row));
    else
      write_bins<lanes>(
          lane, s, [&](int k) { return bins.value(s, k); }, rows.at(row));
  }
};

}  // namespace melflow::cuda
