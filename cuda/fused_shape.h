// fused_shape.h - the distribution of a frame's points over a warp, for each size of the fused
// kernel.
//
// A frame of n_fft real samples is n_fft/2 complex points, transformed in three passes by
// decimation in frequency: n = r1 * r2 * r3. With j = r + r3 * q in each of the r1 sections that
// the first pass leaves, q1 and q2 the outputs of the first two passes and k3 that of the last:
//
//   after pass 1   point (q1, j)        at q1 * section1 + j
//   after pass 2   point (q1, q2, r)    at q1 * stride_q1 + q2 * stride_q2 + r
//   after pass 3   bin q1 + r1 * q2 + r1 * r2 * k3, in registers
//
// The strides have the fewest bank conflicts of all small paddings, for points of 8 bytes (half a
// warp at a time over 16 pairs of banks) and, among equals, of 4.

#pragma once

#include "cuda/host_device.h"

namespace melflow::cuda {

template <int n_fft_, int lanes_, int r1_, int r2_, int r3_, int section1_, int stride_q1_,
          int stride_q2_, int task_run_>
struct Shape {
  static constexpr int n_fft = n_fft_;
  static constexpr int points = n_fft / 2;
  static constexpr int lanes = lanes_;       // per frame
  static constexpr int frames = 32 / lanes;  // per warp at a time
  static constexpr int r1 = r1_, r2 = r2_, r3 = r3_;
  static constexpr int section1 = section1_, stride_q1 = stride_q1_, stride_q2 = stride_q2_;
  static_assert(points == r1 * r2 * r3);

  // Butterflies of the passes, and the most that a lane takes. A task of the last pass is two of
  // them, blocks k0 and blocks - k0, whose bins are each other's mirror images; the first task has
  // the two blocks that mirror themselves, 0 and blocks/2.
  static constexpr int per_section = points / r1;
  static constexpr int middle = points / r2;
  static constexpr int blocks = points / r3;
  static constexpr int tasks = blocks / 2;
  static_assert(blocks % 2 == 0);
  static constexpr int first_per_lane = (per_section + lanes - 1) / lanes;
  static constexpr int middle_per_lane = (middle + lanes - 1) / lanes;
  static constexpr int tasks_per_lane = (tasks + lanes - 1) / lanes;
  // All butterflies of a lane have the same r, hence the same twiddles.
  static constexpr bool same_r = lanes % r3 == 0;
  static constexpr int middle_twiddles = same_r ? 1 : middle_per_lane;

  // Points of shared memory that a frame takes, including padding.
  static constexpr int after_first = (r1 - 1) * section1 + per_section;
  static constexpr int after_middle = (r1 - 1) * stride_q1 + (r2 - 1) * stride_q2 + r3;
  static constexpr int exchanged =
      ((after_first > after_middle ? after_first : after_middle) + 1) / 2 * 2;

  // A lane keeps its part of window and twiddles in registers from frame to frame, and the next
  // frame's samples are prefetched. Larger frames leave no room for that.
  static constexpr bool keeps_tables = points <= 256;
  static constexpr bool keeps_all_tables = keeps_tables && same_r;

  // The block of a task, k0 = q1 + r1 * q2: task_run neighbours in q1, then every q2, then the
  // rest of q1.
  static MELFLOW_HD int first_block(int task) {
    constexpr int q2_count = (tasks + r1 - 1) / r1;
    return task / (task_run_ * q2_count) * task_run_ + task % task_run_ +
           r1 * (task / task_run_ % q2_count);
  }
  static MELFLOW_HD int second_block(int task) {
    return task == 0 ? blocks / 2 : blocks - first_block(task);
  }
  static MELFLOW_HD int place_of_block(int k0) { return k0 % r1 * stride_q1 + k0 / r1 * stride_q2; }

  // Bin of pair q of a task, that is, of the pair's first point. Pair 0 of the first task is point
  // 0 with itself; the pairs within block 0 and those within block blocks/2 follow.
  static MELFLOW_HD int bin_of_pair(int task, int q) {
    constexpr int inside_first = (r3 - 1) / 2;
    if (task > 0) return first_block(task) + blocks * q;
    return q <= inside_first ? blocks * q : blocks / 2 + blocks * (q - 1 - inside_first);
  }
};

using Shape256 = Shape<256, 16, 8, 4, 4, 20, 4, 33, 8>;
using Shape400 = Shape<400, 32, 8, 5, 5, 37, 5, 40, 8>;
using Shape512 = Shape<512, 32, 8, 8, 4, 36, 4, 33, 4>;
using Shape1024 = Shape<1024, 32, 8, 8, 8, 72, 8, 65, 2>;
using Shape2048 = Shape<2048, 32, 8, 8, 16, 144, 17, 136, 8>;

constexpr int fused_sizes[] = {256, 400, 512, 1024, 2048};

}  // namespace melflow::cuda
