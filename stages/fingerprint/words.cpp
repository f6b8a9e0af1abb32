#include "stages/fingerprint/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <optional>
#include <utility>

#include "pipeline/base/wide_vectors.h"
#include "stages/features/mel/mel_kernel.h"
#include "stages/fingerprint/halver.h"

namespace melflow::fingerprint {
namespace {

constexpr int kBands = kBits + 1;
constexpr double kLowest = 300, kHighest = 1800;  // [Hz]
constexpr std::int64_t kPiece = 4096;             // samples that are halved at once
constexpr int kContext = kSmoothed - 1 + kLag;    // frames after its first one that a word needs

// Where frames lie in the samples that are left when the rate has been halved `halvings` times.
struct Framing {
  std::int64_t rate;  // [Hz], before
  int halvings = 0;
  int frame;  // [samples]

  explicit Framing(int of) : rate(of) {
    while (rate >> (halvings + 1) >= kLeastRate) ++halvings;
    // 64 ms within 0.4 %, so that every band has a bin; 4000, 6000 and 5512.5 Hz give multiples of
    // 32, which are fast transforms.
    const double wanted = std::ldexp(static_cast<double>(rate), -halvings) * kFrame / kLeastRate;
    frame = static_cast<int>(std::lround(wanted / 2)) * 2;
  }
  [[nodiscard]] std::int64_t left_of(std::int64_t samples) const {
    return (samples + (std::int64_t{1} << halvings) - 1) >> halvings;
  }
  // The sample nearest to number / kWordsASecond.
  [[nodiscard]] std::int64_t begin_of(std::int64_t number) const {
    return (2 * number * rate + hop_divisor()) / (2 * hop_divisor());
  }
  [[nodiscard]] std::int64_t whole_frames(std::int64_t left) const {
    const std::int64_t last = left - frame;  // the greatest begin_of() there is
    return last < 0 ? 0 : ((2 * last + 1) * hop_divisor() - 1) / (2 * rate) + 1;
  }

 private:
  [[nodiscard]] std::int64_t hop_divisor() const {
    return static_cast<std::int64_t>(kWordsASecond) << halvings;
  }
};

// The first bin of each band, and that after the last one: at kLeastRate the nearest to its edge,
// with frames that are not of 64 ms the nearest to that one's lower end.
std::array<int, kBands + 1> edges_of(const Framing& framing) {
  std::array<int, kBands + 1> out;
  const double width = std::ldexp(static_cast<double>(framing.rate), -framing.halvings) /
                       framing.frame * kFrame / kLeastRate;  // of a bin, in those of kLeastRate
  for (int b = 0; b <= kBands; ++b) {
    const double hz = kLowest * std::pow(kHighest / kLowest, static_cast<double>(b) / kBands);
    const auto bin = static_cast<double>(std::lround(hz * kFrame / kLeastRate));
    out[static_cast<std::size_t>(b)] = static_cast<int>(std::lround((bin - 0.5) / width + 0.5));
  }
  return out;
}

// Band energies of frames; of the mel kernel, with rectangles in place of triangles.
std::shared_ptr<const MelPlan> energies_of(const Framing& framing) {
  MelOptions o;
  o.n_fft = framing.frame;
  o.hop = framing.frame;
  o.center = false;
  o.n_mels = kBands;
  const auto bins = static_cast<std::size_t>(framing.frame / 2 + 1);
  o.filters.rows = kBands;
  o.filters.columns = static_cast<int>(bins);
  o.filters.numbers.resize(kBands * bins);
  const std::array<int, kBands + 1> edges = edges_of(framing);
  for (std::size_t b = 0; b < kBands; ++b)
    for (int k = edges[b]; k < edges[b + 1]; ++k)
      o.filters.numbers[b * bins + static_cast<std::size_t>(k)] = 1;
  return std::make_shared<const MelPlan>(o);
}

MELFLOW_FOR_WIDE_VECTORS void subtract_neighbours(const float* energies, std::size_t frames,
                                                  float* out) {
  for (std::size_t f = 0; f < frames; ++f)
    for (std::size_t b = 0; b < kBits; ++b)
      out[f * kBits + b] = energies[f * kBands + b] - energies[f * kBands + b + 1];
}

MELFLOW_FOR_WIDE_VECTORS void smooth(const float* rows, const float* weights, std::size_t count,
                                     float* out) {
  for (std::size_t r = 0; r < count; ++r) {
    float sums[kBits] = {};
    for (std::size_t f = 0; f < kSmoothed; ++f)
      for (std::size_t b = 0; b < kBits; ++b) sums[b] += weights[f] * rows[(r + f) * kBits + b];
    for (std::size_t b = 0; b < kBits; ++b) out[r * kBits + b] = sums[b];
  }
}

MELFLOW_FOR_WIDE_VECTORS void take_signs(const float* rows, const std::uint32_t* bits,
                                         std::size_t count, std::int32_t* words) {
  for (std::size_t r = 0; r < count; ++r) {
    std::uint32_t word = 0;
    for (std::size_t b = 0; b < kBits; ++b)
      word |= rows[(r + kLag) * kBits + b] > rows[r * kBits + b] ? bits[b] : 0;
    words[r] = static_cast<std::int32_t>(word);
  }
}

}  // namespace

std::int64_t words_of(std::int64_t samples, int rate) {
  const Framing framing(rate);
  const std::int64_t whole = framing.whole_frames(framing.left_of(samples)) - kContext;
  return std::max<std::int64_t>(whole, samples > 0 ? 1 : 0);
}

struct Kernel::Tables {
  Tables(int rate, std::string_view instruction_set)
      : framing(rate), energies(energies_of(framing), instruction_set) {
    for (int i = 0; i < kSmoothed; ++i)
      weights[static_cast<std::size_t>(i)] = static_cast<float>(
          0.5 - 0.5 * std::cos(2 * std::numbers::pi * (i + 1) / (kSmoothed + 1)));
    for (std::size_t b = 0; b < kBits; ++b) bits[b] = std::uint32_t{1} << b;
  }
  // What either folds to below 1800 Hz is 40 dB less: from 2200 Hz on of a rate from 8000 Hz on,
  // from 6200 Hz on of one from 16000 Hz on.
  HalfBand steep{47, 3.4}, wide{11, 4.5};
  Framing framing;
  MelKernel energies;
  std::array<float, kSmoothed> weights;
  std::array<std::uint32_t, kBits> bits;
};

Kernel::Kernel(int rate, std::string_view instruction_set)
    : tables_(std::make_unique<const Tables>(rate, instruction_set)) {}
Kernel::~Kernel() = default;

struct WordStream::State {
  explicit State(const Kernel::Tables& of) : t(of), scratch(of.energies.make_scratch()) {
    for (int h = 1; h <= t.framing.halvings; ++h)
      halvers.emplace_back(h == t.framing.halvings ? t.steep : t.wide);
    halved.resize(halvers.size());
  }

  const Kernel::Tables& t;
  MelKernel::Scratch scratch;
  std::vector<Halver> halvers;
  std::vector<std::vector<float>> halved;  // a piece, by each of them
  std::vector<float> left;                 // samples that later frames need
  std::int64_t left_from = 0, frames = 0;  // the first of these; frames computed
  // Rows [frames, kBits] that later words need: differences of energies, and these smoothed.
  std::vector<float> energies, differences, smoothed;

  void halve(const float* samples, std::int64_t count, bool is_last) {
    for (std::int64_t at = 0; at == 0 || at < count; at += kPiece) {
      const float* piece = samples + at;
      auto n = static_cast<std::size_t>(std::min(kPiece, count - at));
      const bool ends = is_last && at + kPiece >= count;
      for (std::size_t h = 0; h < halvers.size(); ++h) {
        std::vector<float>& out = h + 1 < halvers.size() ? halved[h] : left;
        if (h + 1 < halvers.size()) out.clear();
        halvers[h].add(piece, n, ends, out);
        piece = out.data();
        n = out.size();
      }
      if (halvers.empty()) left.insert(left.end(), piece, piece + n);
    }
  }

  // Appends the differences of frames [frames, end).
  void transform(std::int64_t end) {
    const auto count = static_cast<std::size_t>(end - frames);
    energies.resize(count * kBands);
    for (std::size_t f = 0; f < count; ++f) {
      SignalView<float> view;
      view.data =
          left.data() + (t.framing.begin_of(frames + static_cast<std::int64_t>(f)) - left_from);
      view.length = view.end = t.framing.frame;
      t.energies.add(view, 0, 1, energies.data() + f * kBands, scratch);
    }
    t.energies.flush(scratch);
    const std::size_t at = differences.size();
    differences.resize(at + count * kBits);
    subtract_neighbours(energies.data(), count, differences.data() + at);
    frames = end;
    const std::int64_t needed =
        std::min(t.framing.begin_of(frames) - left_from, static_cast<std::int64_t>(left.size()));
    left.erase(left.begin(), left.begin() + needed);
    left_from += needed;
  }

  // Appends words of all differences that are there.
  void take_words(std::vector<std::int32_t>& words) {
    const std::size_t rows = differences.size() / kBits;
    if (rows < kSmoothed) return;
    const std::size_t fresh = rows - kSmoothed + 1, at = smoothed.size();
    smoothed.resize(at + fresh * kBits);
    smooth(differences.data(), t.weights.data(), fresh, smoothed.data() + at);
    drop_rows(fresh, differences);
    if (smoothed.size() <= kLag * kBits) return;
    const std::size_t count = smoothed.size() / kBits - kLag;
    words.resize(words.size() + count);
    take_signs(smoothed.data(), t.bits.data(), count, words.data() + words.size() - count);
    drop_rows(count, smoothed);
  }
  static void drop_rows(std::size_t count, std::vector<float>& rows) {
    rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count * kBits));
  }
};

WordStream::WordStream(std::shared_ptr<const Kernel> kernel)
    : kernel_(std::move(kernel)), state_(std::make_unique<State>(*kernel_->tables_)) {}
WordStream::WordStream(WordStream&&) noexcept = default;
WordStream::~WordStream() = default;

void WordStream::add(const float* samples, std::int64_t count, bool is_last,
                     std::vector<std::int32_t>& words) {
  State& s = *state_;
  s.halve(samples, count, is_last);
  const Framing& framing = s.t.framing;
  const auto end = s.left_from + static_cast<std::int64_t>(s.left.size());
  std::int64_t ready = framing.whole_frames(end);
  if (is_last && ready <= kContext && end > 0) {
    ready = kContext + 1;
    s.left.resize(
        static_cast<std::size_t>(framing.begin_of(kContext) + framing.frame - s.left_from));
  }
  // As many at once as vectors have lanes.
  if (!is_last) ready -= (ready - s.frames) % lanes::max_width;
  if (ready <= s.frames) return;
  s.transform(ready);
  s.take_words(words);
}

}  // namespace melflow::fingerprint
