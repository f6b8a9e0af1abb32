#include "cuda/band_pieces.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace melflow::cuda {
namespace {

constexpr int banks = 32;

struct Piece {
  int band = 0;
  int first_bin = 0;
  int count = 0;
  int weights_at = 0;  // in the front end's weights
};

// Every band in as few pieces of at most `longest` bins as that takes, the longest piece first.
std::vector<Piece> cut(std::span<const Band> bands, int longest) {
  std::vector<Piece> pieces;
  for (std::size_t m = 0; m < bands.size(); ++m) {
    const Band& band = bands[m];
    const int n = (band.count + longest - 1) / longest;
    for (int i = 0; i < n; ++i) {
      const int begin = band.count * i / n, end = band.count * (i + 1) / n;
      pieces.push_back(
          {static_cast<int>(m), band.first_bin + begin, end - begin, band.offset + begin});
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.count > b.count; });
  return pieces;
}

int round_up(int n, int unit) { return (n + unit - 1) / unit * unit; }

// Accesses to shared memory of a frame: power and weight for each step, and for each partial its
// write and its reading by the band.
int cost(const std::vector<Piece>& pieces, int lanes, int unit) {
  int sum = 0;
  for (std::size_t i = 0; i < pieces.size(); i += static_cast<std::size_t>(lanes))
    sum += 2 * round_up(pieces[i].count, unit) + 4;
  return sum;
}

std::vector<Piece> best_cut(std::span<const Band> bands, int n_bins, int lanes, int unit) {
  int widest = 1, total = 0;
  for (const Band& band : bands) {
    widest = std::max(widest, band.count);
    total += band.count;
  }
  widest = std::min(widest, n_bins / unit * unit);
  std::vector<Piece> best = cut(bands, widest);
  // Shorter pieces than an eighth of a lane's share cost more in partials than they level out.
  const int shortest = std::max(4, total / lanes / 8);
  const int step = std::max(1, (widest - shortest) / 64);
  for (int longest = widest - step; longest >= shortest; longest -= step) {
    std::vector<Piece> pieces = cut(bands, longest);
    if (cost(pieces, lanes, unit) < cost(best, lanes, unit)) best = std::move(pieces);
  }
  return best;
}

// Where each of a round's pieces begins: at its own bin or up to its slack before.
std::vector<int> place(std::span<const Piece> pieces, int steps, int n_bins) {
  std::vector<int> first(pieces.size());
  int readers[banks] = {};
  for (std::size_t i = 0; i < pieces.size(); ++i) {  // the longest ones have the least choice
    const Piece& piece = pieces[i];
    const int low = std::max(0, piece.first_bin - (steps - piece.count));
    const int high = std::min(piece.first_bin, n_bins - steps);
    int chosen = high;
    for (int at = high; at >= low; --at)
      if (readers[at % banks] < readers[chosen % banks]) chosen = at;
    ++readers[chosen % banks];
    first[i] = chosen;
  }
  return first;
}

}  // namespace

BandTables::BandTables(std::span<const Band> bands, std::span<const float> weights, int n_bins,
                       int lanes, int unit) {
  const auto width = static_cast<std::size_t>(lanes);
  const std::vector<Piece> pieces = best_cut(bands, n_bins, lanes, unit);
  const std::size_t rounds = (pieces.size() + width - 1) / width;
  std::vector<std::int32_t> steps(rounds), weights_at(rounds), first_bin(rounds * width);
  std::vector<std::vector<std::int32_t>> partials(bands.size());
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t begin = round * width;
    const auto here = std::span(pieces).subspan(begin, std::min(width, pieces.size() - begin));
    steps[round] = round_up(here[0].count, unit);
    const auto n = static_cast<std::size_t>(steps[round]);
    weights_at[round] = static_cast<std::int32_t>(weights_.size());
    weights_.resize(weights_.size() + n * width, 0.0F);
    float* const to = weights_.data() + weights_at[round];
    const std::vector<int> first = place(here, steps[round], n_bins);
    for (std::size_t lane = 0; lane < here.size(); ++lane) {
      const Piece& piece = here[lane];
      first_bin[begin + lane] = first[lane];
      const auto shift = static_cast<std::size_t>(piece.first_bin - first[lane]);
      for (std::size_t i = 0; i < static_cast<std::size_t>(piece.count); ++i)
        to[(shift + i) * width + lane] = weights[static_cast<std::size_t>(piece.weights_at) + i];
      partials[static_cast<std::size_t>(piece.band)].push_back(
          static_cast<std::int32_t>(begin + lane));
    }
  }
  indices_ = steps;
  indices_.insert(indices_.end(), weights_at.begin(), weights_at.end());
  indices_.insert(indices_.end(), first_bin.begin(), first_bin.end());
  std::int32_t at = 0;
  for (const auto& of_band : partials) {
    indices_.push_back(at);
    at += static_cast<std::int32_t>(of_band.size());
  }
  indices_.push_back(at);
  for (const auto& of_band : partials)
    indices_.insert(indices_.end(), of_band.begin(), of_band.end());
  counts_ = {lanes, static_cast<int>(rounds), static_cast<int>(bands.size()),
             static_cast<int>(indices_.size()), static_cast<int>(weights_.size())};
}

int BandTables::steps() const {
  return std::accumulate(indices_.begin(), indices_.begin() + counts_.rounds, 0);
}

}  // namespace melflow::cuda
