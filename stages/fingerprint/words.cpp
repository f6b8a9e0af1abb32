#include "stages/fingerprint/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "stages/features/mel/aligned_array.h"
#include "stages/features/mel/own_fft.h"

namespace melflow::fingerprint {
namespace {

constexpr int kBands = kBits + 1;
constexpr double kLowest = 300, kHighest = 1800;  // [Hz]
constexpr std::int64_t kPiece = 1024;             // words computed at once
using Differences = std::array<double, kBits>;

double hann(int i, int n) { return 0.5 - 0.5 * std::cos(2 * std::numbers::pi * i / n); }

}  // namespace

struct Kernel::Tables {
  OwnFft fft{kFrame};
  std::array<float, kFrame> window;
  std::array<double, kSmoothed> weights;
  std::array<int, kBands + 1> edges;  // the first bin of each band, and that after the last one
};

Kernel::Kernel() {
  auto tables = std::make_unique<Tables>();
  for (int i = 0; i < kFrame; ++i)
    tables->window[static_cast<std::size_t>(i)] = static_cast<float>(hann(i, kFrame));
  for (int i = 0; i < kSmoothed; ++i)
    tables->weights[static_cast<std::size_t>(i)] = hann(i + 1, kSmoothed + 1);
  for (int b = 0; b <= kBands; ++b)
    tables->edges[static_cast<std::size_t>(b)] = static_cast<int>(std::lround(
        kLowest * std::pow(kHighest / kLowest, static_cast<double>(b) / kBands) * kFrame / kRate));
  tables_ = std::move(tables);
}

Kernel::~Kernel() = default;

void Kernel::compute(const float* samples, std::int64_t there, std::int64_t count,
                     std::int32_t* words) const {
  const Tables& t = *tables_;
  AlignedArray<float> frame(kFrame), bins(kFrame + 2);
  AlignedArray<double> work(t.fft.work_size());
  std::vector<Differences> differences, sums;
  for (std::int64_t done = 0; done < count; done += kPiece) {
    const std::int64_t now = std::min(kPiece, count - done);
    differences.assign(static_cast<std::size_t>(now + kLag + kSmoothed - 1), {});
    for (std::size_t f = 0; f < differences.size(); ++f) {
      const std::int64_t at = (done + static_cast<std::int64_t>(f)) * kHop;
      const std::int64_t known = std::clamp<std::int64_t>(there - at, 0, kFrame);
      for (std::int64_t i = 0; i < known; ++i)
        frame.data()[i] = samples[at + i] * t.window[static_cast<std::size_t>(i)];
      std::fill(frame.data() + known, frame.data() + kFrame, 0.0F);
      t.fft.execute(frame.data(), bins.data(), work.data());
      std::array<double, kBands> energy{};
      for (std::size_t b = 0; b < kBands; ++b)
        for (int k = t.edges[b]; k < t.edges[b + 1]; ++k) {
          const double re = bins.data()[2 * k], im = bins.data()[2 * k + 1];
          energy[b] += re * re + im * im;
        }
      for (std::size_t b = 0; b < kBits; ++b) differences[f][b] = energy[b] - energy[b + 1];
    }
    sums.assign(static_cast<std::size_t>(now + kLag), {});
    for (std::size_t r = 0; r < sums.size(); ++r)
      for (std::size_t f = 0; f < kSmoothed; ++f)
        for (std::size_t b = 0; b < kBits; ++b) sums[r][b] += t.weights[f] * differences[r + f][b];
    for (std::size_t r = 0; r < static_cast<std::size_t>(now); ++r) {
      std::uint32_t word = 0;
      for (std::size_t b = 0; b < kBits; ++b)
        word |= static_cast<std::uint32_t>(sums[r + kLag][b] > sums[r][b]) << b;
      words[done + static_cast<std::int64_t>(r)] = static_cast<std::int32_t>(word);
    }
  }
}

}  // namespace melflow::fingerprint
