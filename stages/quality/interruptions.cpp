#include "stages/quality/interruptions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "pipeline/base/wide_vectors.h"

namespace melflow {
namespace {

constexpr float kSound = 0.01F;       // rms beside a dropout
constexpr float kLeastClick = 0.02F;  // second difference
constexpr float kStandsOut = 8;
constexpr std::int64_t kClickSpan = 2;       // samples from its largest second difference
constexpr std::uint32_t kAnchors = 31;       // one in as many samples + 1 is looked up
constexpr float kLeastRange = 4.0F / 32768;  // of the samples of a repetition
constexpr std::int64_t kPeriodic = 8;        // repetitions

bool is_zero(const Chunk& chunk, std::int64_t i) {
  return std::all_of(chunk.channels.begin(), chunk.channels.end(),
                     [i](const float* x) { return x[i] == 0; });
}

double squares(const Chunk& chunk, std::int64_t i) {
  double out = 0;
  for (const float* x : chunk.channels) out += static_cast<double>(x[i]) * x[i];
  return out;
}

using Marks = std::array<std::uint8_t, Chunk::kFrames>;

// Pointers, since compilers do not vectorise loops whose places are checked.
MELFLOW_FOR_WIDE_VECTORS void mark_zeros(const float* x, std::int64_t n, std::uint8_t* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] == 0 ? 1 : 0;
}

// Marks places that the samples themselves decide, so that they are the same in a repetition.
MELFLOW_FOR_WIDE_VECTORS void mark_anchors(const float* x, std::int64_t n, std::uint8_t* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits =
        std::bit_cast<std::uint32_t>(x[i]) ^ std::rotl(std::bit_cast<std::uint32_t>(x[i - 1]), 9);
    out[i] = ((bits * 0x9E3779B1U) >> 27 & kAnchors) == 0 ? 1 : 0;
  }
}

// Returns the first marked place in [at, n), or n.
std::int64_t next_mark(const Marks& marks, std::int64_t at, std::int64_t n) {
  while (at + 8 <= n) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, marks.data() + at, sizeof eight);
    if (eight != 0) return at + std::countr_zero(eight) / 8;
    at += 8;
  }
  while (at < n && marks[static_cast<std::size_t>(at)] == 0) ++at;
  return at;
}

// Sets each to its second difference, where that is larger.
MELFLOW_FOR_WIDE_VECTORS void take_second_differences(const float* x, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = std::abs(x[i] - 2 * x[i - 1] + x[i - 2]);
    out[i] = value > out[i] ? value : out[i];
  }
}

MELFLOW_FOR_WIDE_VECTORS float largest(const float* x, std::int64_t n) {
  return lane_max(n, [x](std::int64_t i) { return x[i]; });
}
}  // namespace

void EventCount::store(MeasureValues& out, Measure number, Measure at, int rate) const {
  out[number] = static_cast<float>(count);
  if (count > 0) out[at] = static_cast<float>(static_cast<double>(first) / rate);
}

DropoutKernel::DropoutKernel(int sample_rate)
    : rate_(sample_rate),
      least_(std::max(16, sample_rate / 1000)),
      beside_(std::clamp<std::int64_t>(sample_rate / 500, 1, Chunk::kHistory)) {}

void DropoutKernel::push(const Chunk& chunk) {
  const double needed =
      static_cast<double>(kSound * kSound) *
      static_cast<double>(beside_ * static_cast<std::int64_t>(chunk.channels.size()));
  Marks zeros;
  mark_zeros(chunk.channels.front(), chunk.frames, zeros.data());
  for (std::int64_t i = 0; i < chunk.frames;) {
    // Mostly there is nothing to do for many samples.
    if (run_ == 0 && after_left_ == 0) {
      i = next_mark(zeros, i, chunk.frames);
      if (i == chunk.frames) break;
    }
    const bool zero = zeros[static_cast<std::size_t>(i)] != 0 && is_zero(chunk, i);
    if (zero && run_++ == 0) {
      before_ = 0;
      for (std::int64_t k = 1; k <= beside_; ++k) before_ += squares(chunk, i - k);
    }
    if (after_left_ > 0) {
      after_ += squares(chunk, i);
      if (--after_left_ == 0 && after_ >= needed) events_.add(candidate_);
    }
    if (!zero && run_ > 0) {
      if (run_ >= least_ && before_ >= needed) {
        candidate_ = chunk.start + i - run_;
        after_left_ = beside_ - 1;
        after_ = squares(chunk, i);
      }
      run_ = 0;
    }
    ++i;
  }
}

void DropoutKernel::finish(MeasureValues& out) {
  events_.store(out, Measure::dropouts, Measure::dropout_at, rate_);
}

RepeatKernel::RepeatKernel(int sample_rate)
    : rate_(sample_rate),
      shortest_(std::max(8, sample_rate / 200)),
      longest_(std::max(16, sample_rate / 2)),
      mask_(static_cast<std::int64_t>(
                std::bit_ceil(static_cast<std::uint64_t>(2 * longest_ + Chunk::kFrames))) -
            1),
      past_(static_cast<std::size_t>(mask_ + 1)),
      seen_(std::bit_ceil(static_cast<std::size_t>(longest_ / 4))) {}

// Looks for the place where the samples up to `at` were before.
void RepeatKernel::look(std::int64_t at) {
  std::uint32_t hash = 0;
  float low = sample(at), high = low;
  for (std::int64_t k = 0; k < 8; ++k) {
    const float value = sample(at - k);
    low = std::min(low, value), high = std::max(high, value);
    hash = (std::rotl(hash, 5) ^ std::bit_cast<std::uint32_t>(value)) * 0x9E3779B1U;
  }
  if (low == high) return;  // silence
  Seen& place = seen_[(hash >> 7) & (seen_.size() - 1)];
  const std::int64_t lag = place.hash == hash && place.at >= 0 ? at - place.at : 0;
  place = {hash, at};
  if (lag < shortest_ || lag > longest_ || lag_ > 0) return;
  std::int64_t begin = at;
  while (begin > lag && at - begin < longest_ && sample(begin - 1) == sample(begin - 1 - lag))
    --begin;
  lag_ = lag;
  begin_ = begin;
  equal_ = at + 1 - begin;
}

void RepeatKernel::close() {
  if (equal_ >= lag_ && equal_ < kPeriodic * lag_) {
    // Silence in which the last bit changes repeats itself by chance.
    const std::int64_t end = begin_ + equal_;
    float low = sample(end - 1), high = low;
    for (std::int64_t k = 2; k <= lag_; ++k)
      low = std::min(low, sample(end - k)), high = std::max(high, sample(end - k));
    if (high - low > kLeastRange) events_.add(begin_);
  }
  lag_ = 0;
}

void RepeatKernel::push(const Chunk& chunk) {
  const float* x = chunk.channels.front();
  for (std::int64_t i = 0; i < chunk.frames;) {  // in one or two pieces
    const std::int64_t to = (chunk.start + i) & mask_,
                       n = std::min(chunk.frames - i, mask_ + 1 - to);
    std::copy_n(x + i, n, past_.begin() + to);
    i += n;
  }
  Marks anchors;
  mark_anchors(x, chunk.frames, anchors.data());
  for (std::int64_t i = 0; i < chunk.frames; ++i) {
    if (lag_ == 0) {
      i = next_mark(anchors, i, chunk.frames);
      if (i == chunk.frames) break;
    }
    const std::int64_t at = chunk.start + i;
    if (lag_ > 0) {
      if (x[i] == sample(at - lag_))
        ++equal_;
      else
        close();
    }
    if (anchors[static_cast<std::size_t>(i)] != 0 && at >= 8) look(at);
  }
}

void RepeatKernel::finish(MeasureValues& out) {
  if (lag_ > 0) close();
  events_.store(out, Measure::repeats, Measure::repeat_at, rate_);
}

// Three stretches are within Chunk::kHistory.
ClickKernel::ClickKernel(int sample_rate)
    : rate_(sample_rate), length_(std::clamp(sample_rate / 1000, 8, 160)) {}

void ClickKernel::push(const Chunk& chunk) {
  std::array<float, Chunk::kFrames> seconds{};
  for (const float* x : chunk.channels) take_second_differences(x, chunk.frames, seconds.data());
  for (std::int64_t at = 0; at < chunk.frames;) {
    const std::int64_t n = std::min(length_ - fill_, chunk.frames - at);
    most_ = std::max(most_, largest(seconds.data() + at, n));
    fill_ += n;
    at += n;
    if (fill_ == length_) {
      const Stretch& before = of(stretches_ - 3);
      Stretch& own = of(stretches_ - 1);
      if (own.most >= kLeastClick && own.most >= kStandsOut * before.most)
        own.is_narrow = is_narrow(chunk, at - 2 * length_);
      close_stretch();
    }
  }
}

// Whether the largest second difference of the stretch from `begin` stands alone: a pulse or step
// of 3 samples or fewer, where the release of a plosive or a click of the tongue goes on for 1 ms.
bool ClickKernel::is_narrow(const Chunk& chunk, std::int64_t begin) const {
  const auto second = [&](std::int64_t i) {
    float out = 0;
    for (const float* x : chunk.channels)
      out = std::max(out, std::abs(x[i] - 2 * x[i - 1] + x[i - 2]));
    return out;
  };
  std::int64_t top = begin;
  for (std::int64_t i = begin; i < begin + length_; ++i)
    if (second(i) > second(top)) top = i;
  const float limit = second(top) / kStandsOut;
  for (std::int64_t i = top - length_; i <= top + length_; ++i)
    if (std::abs(i - top) > kClickSpan && second(i) >= limit) return false;
  return true;
}

void ClickKernel::close_stretch() {
  of(stretches_) = {most_, false};
  ++stretches_;
  most_ = 0;
  fill_ = 0;
  if (stretches_ > kAround) judge();
}

// Judges the stretch kAround before the last.
void ClickKernel::judge() {
  const std::int64_t middle = stretches_ - 1 - kAround;
  const Stretch& own = of(middle);
  // The recording's own first samples may be in the middle of a sound.
  if (!own.is_narrow || middle == 0) return;
  float around = 0;
  for (std::int64_t k = kBeside + 1; k <= kAround; ++k)
    around = std::max({around, of(middle - k).most, of(middle + k).most});
  if (own.most < kStandsOut * around ||
      own.most < std::max(of(middle - 1).most, of(middle + 1).most))
    return;
  if (middle - last_click_ > kBeside) events_.add(middle * length_);
  last_click_ = middle;
}

void ClickKernel::finish(MeasureValues& out) {
  for (std::int64_t k = 0; k <= kAround; ++k) close_stretch();
  events_.store(out, Measure::clicks, Measure::click_at, rate_);
}

}  // namespace melflow
