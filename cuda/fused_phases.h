// fused_phases.h - the fused kernel, samples to row in one pass, as phases between barriers.
//
// In:  samples of a frame.
// Out: its row.
//
// A warp works on one frame at a time (on two of 256 samples, half a warp each). A lane has its
// points in registers and exchanges them through shared memory. A phase is the work of every lane
// between two barriers; the kernel (fused_kernel.cuh) has a barrier after each phase. A phase must
// not read what another lane writes in the same phase: tests/emulated runs lanes in several orders.
//
//   fetch          samples of a frame into registers (any time before `first`)
//   first          window, butterflies r1, twiddles              -> shared
//   middle_load    shared                                        -> registers
//   middle_store   butterflies r2, twiddles                      -> shared, in another order
//   last           butterflies r3, even and odd part, power      -> registers
//   store_power    power                                         -> shared, in place of the points
//   exponent       in place, unless it is 2 and there is no offset
//   sum_bands      pieces of bands                               -> shared, after the power
//   write_...      bands or bins, logarithm                      -> row
//
// Squared magnitudes of bins k and points - k come from the transform Z of even (re) and odd (im)
// samples: with E, O the transforms of the two, X[k] = E[k] + exp(-2 pi i k / n_fft) O[k], and
// X[points - k] is the conjugate of E[k] - exp(...) O[k]. The window includes the factors 1/2 of
// E = (Z[k] + conj Z[-k]) / 2 and of O.

#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/complex.h"
#include "cuda/fused_shape.h"
#include "cuda/host_device.h"
#include "cuda/levels.h"
#include "cuda/mel_tables.h"
#include "cuda/number_types.h"

namespace melflow::cuda {

template <class S, class Sample, NumberType operands>
struct Fused {
  using Store = Operand<operands>;
  using Stored = typename Store::Stored;

  static constexpr int first_points = S::first_per_lane * S::r1;
  static constexpr int middle_points = S::middle_per_lane * S::r2;
  static constexpr int last_points = S::tasks_per_lane * 2 * S::r3;
  static constexpr int first_twiddles = S::first_per_lane * (S::r1 - 1);
  static constexpr int middle_twiddles = S::middle_twiddles * (S::r2 - 1);
  static constexpr int turns = S::tasks_per_lane * S::r3;

  // Values that a lane keeps in registers, or else reads when it needs them.
  template <int count, bool keeps = S::keeps_tables>
  struct LaneTable {
    Complex kept[keeps ? count : 1];
    const Complex* table;

    MELFLOW_HD void load(const Complex* from, int lane) {
      table = from + lane;
      if constexpr (keeps) {
        MELFLOW_UNROLL
        for (int k = 0; k < count; ++k) kept[k] = read_only(table + k * S::lanes);
      }
    }
    MELFLOW_HD Complex at(int k) const {
      if constexpr (keeps) return kept[k];
      return read_only(table + k * S::lanes);
    }
  };

  // The registers of a lane.
  struct Lane {
    LaneTable<first_points> window;
    LaneTable<first_twiddles> first;
    LaneTable<middle_twiddles, S::keeps_all_tables> middle;
    LaneTable<turns, S::keeps_all_tables> turn;
    SamplePair<Sample> samples[first_points];
    Complex points[middle_points];
    float power[last_points + 1];
  };

  // Shared memory of the lanes of a frame: exchanged points, later replaced by the power [n_bins],
  // and partial sums after both.
  struct Shared {
    unsigned char* memory;
    std::uint32_t partials_at;  // [bytes]
    MELFLOW_HD Stored* points() const { return reinterpret_cast<Stored*>(memory); }
    MELFLOW_HD float* power() const { return reinterpret_cast<float*>(memory); }
    MELFLOW_HD float* partials() const { return reinterpret_cast<float*>(memory + partials_at); }
  };

  static MELFLOW_HD void start(int lane, const FusedView& tables, Lane& state) {
    state.window.load(tables.window, lane);
    state.first.load(tables.first, lane);
    state.middle.load(tables.middle, lane);
    state.turn.load(tables.turn, lane);
  }

  // `samples`: aligned for a pair of samples. Neighbouring lanes take neighbouring pairs: with 16
  // bytes per lane, the points of a lane's butterfly would be in other lanes. Past the end of the
  // frame the window is 0 and its first pair is read, since nothing outside may be read.
  static MELFLOW_HD void fetch(int lane, const Settings& s, const Sample* samples,
                               std::uint32_t offset, Lane& state) {
    const Sample* frame = samples + offset;
    const int length = s.frame_length;
    if (length == S::n_fft && offset % 2 == 0) {
      const Sample* from =
          frame + 2 * (S::per_section < S::lanes && lane >= S::per_section ? 0 : lane);
      MELFLOW_UNROLL
      for (int k = 0; k < first_points; ++k)
        state.samples[k] = load_pair(from + 2 * point_of(0, k));
    } else if ((offset | static_cast<std::uint32_t>(length)) % 2 == 0) {
      MELFLOW_UNROLL
      for (int k = 0; k < first_points; ++k) {
        const int at = 2 * point_of(lane, k);
        state.samples[k] = load_pair(frame + (at < length ? at : 0));
      }
    } else {
      MELFLOW_UNROLL
      for (int k = 0; k < first_points; ++k) {
        const int at = 2 * point_of(lane, k);
        state.samples[k] =
            make_pair(frame[at < length ? at : 0], frame[at + 1 < length ? at + 1 : 0]);
      }
    }
  }

  static MELFLOW_HD void first(int lane, const Shared& shared, Lane& state) {
    MELFLOW_UNROLL
    for (int i = 0; i < S::first_per_lane; ++i) {
      const int j = lane + S::lanes * i;
      Complex x[S::r1];
      MELFLOW_UNROLL
      for (int q = 0; q < S::r1; ++q) {
        const SamplePair<Sample> pair = state.samples[i * S::r1 + q];
        const Complex w = state.window.at(i * S::r1 + q);
        x[q] = {pair.first() * w.re, pair.second() * w.im};
      }
      Dft<S::r1>::run(x);
      if (j >= S::per_section) continue;
      Stored* to = shared.points() + j;
      to[0] = Store::pack(x[0]);
      MELFLOW_UNROLL
      for (int q = 1; q < S::r1; ++q)
        to[q * S::section1] = Store::pack(x[q] * state.first.at(i * (S::r1 - 1) + q - 1));
    }
  }

  static MELFLOW_HD void middle_load(int lane, const Shared& shared, Lane& state) {
    MELFLOW_UNROLL
    for (int i = 0; i < S::middle_per_lane; ++i) {
      const int b = lane + S::lanes * i;
      if (b >= S::middle) continue;
      const Stored* from = shared.points() + b / S::r3 * S::section1 + b % S::r3;
      MELFLOW_UNROLL
      for (int q = 0; q < S::r2; ++q) state.points[i * S::r2 + q] = Store::unpack(from[q * S::r3]);
    }
  }

  static MELFLOW_HD void middle_store(int lane, const Shared& shared, Lane& state) {
    MELFLOW_UNROLL
    for (int i = 0; i < S::middle_per_lane; ++i) {
      const int b = lane + S::lanes * i;
      if (b >= S::middle) continue;
      Complex x[S::r2];
      MELFLOW_UNROLL
      for (int q = 0; q < S::r2; ++q) x[q] = state.points[i * S::r2 + q];
      Dft<S::r2>::run(x);
      Stored* to = shared.points() + b / S::r3 * S::stride_q1 + b % S::r3;
      constexpr int i_step = S::same_r ? 0 : S::r2 - 1;
      to[0] = Store::pack(x[0]);
      MELFLOW_UNROLL
      for (int q = 1; q < S::r2; ++q)
        to[q * S::stride_q2] = Store::pack(x[q] * state.middle.at(i * i_step + q - 1));
    }
  }

  static MELFLOW_HD void load_block(const Shared& shared, int k0, Complex (&x)[S::r3]) {
    const Stored* from = shared.points() + S::place_of_block(k0);
    MELFLOW_UNROLL
    for (int r = 0; r < S::r3; ++r) x[r] = Store::unpack(from[r]);
    Dft<S::r3>::run(x);
  }

  static MELFLOW_HD void last(int lane, const Shared& shared, Lane& state) {
    MELFLOW_UNROLL
    for (int i = 0; i < S::tasks_per_lane; ++i) {
      const int task = lane + S::lanes * i;
      if (task >= S::tasks) continue;
      Complex x[S::r3], mirror[S::r3];
      load_block(shared, S::first_block(task), x);
      load_block(shared, S::second_block(task), mirror);
      float* power = state.power + i * 2 * S::r3;
      MELFLOW_UNROLL
      for (int q = 0; q < S::r3; ++q) {
        Complex low = x[q], high = mirror[S::r3 - 1 - q];
        if (i == 0 && task == 0) pair_of_first_task(q, x, mirror, low, high);
        const Complex even = {low.re + high.re, low.im - high.im};
        const Complex difference = {low.re - high.re, low.im + high.im};
        const Complex odd = difference * state.turn.at(i * S::r3 + q);
        power[2 * q] = squared(even + odd);
        power[2 * q + 1] = squared(even - odd);
      }
      // Bin points/2 mirrors itself. It belongs to the first task; store_power reads no other.
      if (i == 0)
        state.power[last_points] =
            4.0F * squared(S::r3 % 2 == 0 ? x[S::r3 / 2] : mirror[(S::r3 - 1) / 2]);
    }
  }

  static MELFLOW_HD void store_power(int lane, const Settings& s, const Shared& shared,
                                     const Lane& state) {
    float* to = shared.power();
    const auto store = [&](int k, float squared_magnitude) {
      to[k] =
          operands == NumberType::float16 ? squared_magnitude * s.power_scale : squared_magnitude;
    };
    MELFLOW_UNROLL
    for (int i = 0; i < S::tasks_per_lane; ++i) {
      const int task = lane + S::lanes * i;
      if (task >= S::tasks) continue;
      MELFLOW_UNROLL
      for (int q = 0; q < S::r3; ++q) {
        const int k = S::bin_of_pair(task, q);
        store(k, state.power[2 * (i * S::r3 + q)]);
        store(S::points - k, state.power[2 * (i * S::r3 + q) + 1]);
      }
      if (i == 0 && task == 0) store(S::points / 2, state.power[last_points]);
    }
  }

  // Only with Settings::has_exponent. A loop over memory: for bins in registers, the code of every
  // exponent would be repeated for each bin.
  static MELFLOW_HD void exponent(int lane, const Settings& s, const Shared& shared) {
    float* power = shared.power();
    for (int k = lane; k < s.n_bins; k += S::lanes) power[k] = bin_value(s, power[k]);
  }

  static MELFLOW_HD void sum_bands(int lane, const BandView& bands, const Shared& shared) {
    const float* power = shared.power();
    sum_pieces<S::lanes, FusedTables::steps_of>(
        lane, bands, [power](int k) { return power + k; }, shared.partials());
  }

  static MELFLOW_HD void write_mel(int lane, const Settings& s, const BandCounts& bands,
                                   const Shared& shared, const Rows& rows, std::uint32_t row) {
    write_bands<S::lanes, PlainSum>(lane, s, bands, shared.partials(), rows.at(row));
  }

  static MELFLOW_HD void write_spectrum(int lane, const Settings& s, const Shared& shared,
                                        const Rows& rows, std::uint32_t row) {
    const float* power = shared.power();
    write_bins<S::lanes>(
        lane, s, [power](int k) { return power[k]; }, rows.at(row));
  }

 private:
  static MELFLOW_HD int point_of(int lane, int k) {
    return lane + S::lanes * (k / S::r1) + S::per_section * (k % S::r1);
  }

  // Blocks 0 (x) and blocks/2 (mirror) mirror themselves: their pairs lie within each of them.
  static MELFLOW_HD void pair_of_first_task(int q, const Complex (&x)[S::r3],
                                            const Complex (&mirror)[S::r3], Complex& low,
                                            Complex& high) {
    constexpr int inside_first = (S::r3 - 1) / 2;
    if (q <= inside_first) {
      low = x[q];
      high = x[(S::r3 - q) % S::r3];
    } else {
      low = mirror[q - 1 - inside_first];
      high = mirror[S::r3 - 1 - (q - 1 - inside_first)];
    }
  }
};

}  // namespace melflow::cuda
