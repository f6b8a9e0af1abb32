// What interrupts a sound: zeros, repeated stretches, clicks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "stages/quality/kernel.h"

namespace melflow {

/// Events of one kind: how many, and where the first is [frames].
struct EventCount {
  std::int64_t count = 0, first = -1;
  void add(std::int64_t at) {
    if (count++ == 0) first = at;
  }
  void store(MeasureValues& out, Measure number, Measure at, int rate) const;
};

/// Runs of zeros in the middle of sound.
class DropoutKernel final : public MeasuringKernel {
 public:
  explicit DropoutKernel(int sample_rate);
  void push(const Chunk& chunk) override;
  void finish(MeasureValues& out) override;

 private:
  int rate_;
  std::int64_t least_, beside_;  // samples
  std::int64_t run_ = 0;         // zeros up to now
  double before_ = 0;            // squares of all channels in the samples before the run
  std::int64_t candidate_ = -1;  // begin of a run that is over and long enough
  std::int64_t after_left_ = 0;  // samples after it that are still to come
  double after_ = 0;             // their squares
  EventCount events_;
};

/// Stretches that equal the one before.
class RepeatKernel final : public MeasuringKernel {
 public:
  explicit RepeatKernel(int sample_rate);
  void push(const Chunk& chunk) override;
  void finish(MeasureValues& out) override;

 private:
  void look(std::int64_t at);
  void close();
  [[nodiscard]] float sample(std::int64_t at) const {
    return past_[static_cast<std::size_t>(at & mask_)];
  }

  int rate_;
  std::int64_t shortest_, longest_;  // lag [samples]
  std::int64_t mask_;
  std::vector<float> past_;  // the last mask_ + 1 samples of the first channel
  struct Seen {
    std::uint32_t hash = 0;
    std::int64_t at = -1;
  };
  std::vector<Seen> seen_;            // by the low bits of the hash
  std::int64_t lag_ = 0, equal_ = 0;  // the match under way: its lag, and the length so far
  std::int64_t begin_ = 0;
  EventCount events_;
};

/// Short steps or pulses that stand out.
class ClickKernel final : public MeasuringKernel {
 public:
  explicit ClickKernel(int sample_rate);
  void push(const Chunk& chunk) override;
  void finish(MeasureValues& out) override;

 private:
  struct Stretch {
    float most = 0;          // second difference
    bool is_narrow = false;  // known one stretch later, and only where it may be a click
  };
  void close_stretch();
  void judge();
  [[nodiscard]] bool is_narrow(const Chunk& chunk, std::int64_t begin) const;
  // Of the last stretches, also of some that come before the recording.
  Stretch& of(std::int64_t number) {
    const auto size = static_cast<std::int64_t>(last_.size());
    return last_[static_cast<std::size_t>((number + size) % size)];
  }

  static constexpr std::int64_t kAround = 10, kBeside = 1;  // stretches
  int rate_;
  std::int64_t length_;  // of a stretch [samples]
  std::int64_t fill_ = 0, stretches_ = 0;
  float most_ = 0;                               // in the stretch that has begun
  std::array<Stretch, 2 * kAround + 1> last_{};  // the last stretches, in a ring
  EventCount events_;
  std::int64_t last_click_ = -100;
};

}  // namespace melflow
