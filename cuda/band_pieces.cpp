#include "cuda/band_pieces.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>

namespace melflow::cuda {
namespace {

// A run of neighbouring bins of one band.
struct Run {
  int band = 0;
  int first_bin = 0;
  int count = 0;
  int weights_at = 0;  // in the front end's weights
};

// Cuts every band into the fewest runs of at most `longest` bins, at least one; returns the longest
// run first. For `variant` 0 the runs of a band are equally long; other variants differ.
std::vector<Run> cut(std::span<const Band> bands, int longest, unsigned variant) {
  std::vector<Run> runs;
  std::minstd_rand random(variant);
  for (std::size_t m = 0; m < bands.size(); ++m) {
    const Band& band = bands[m];
    const int n = std::max(1, (band.count + longest - 1) / longest);
    for (int i = 0, begin = 0; i < n; ++i) {
      // The remaining bins must fit into the remaining runs.
      const int low = std::max(std::min(begin + 1, band.count), band.count - longest * (n - 1 - i));
      const int high = std::min(begin + longest, band.count - (n - 1 - i));
      const int end = variant == 0 ? band.count * (i + 1) / n
                                   : low + static_cast<int>(random() % (high - low + 1U));
      runs.push_back(
          {static_cast<int>(m), band.first_bin + begin, end - begin, band.offset + begin});
      begin = end;
    }
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run& a, const Run& b) { return a.count > b.count; });
  return runs;
}

// The steps of a round whose longest run has `bins` bins.
int steps_for(int bins, int unit) { return std::max((bins + unit - 1) / unit, 1) * unit; }

// The runs of one round, and where each lane begins to read: at its run's first bin or earlier
// within its slack, so that few lanes begin in the same bank. This is a matching of lanes and
// banks, made by augmenting paths. A group has as many banks as lanes: the other group of a warp
// reads from the other banks.
struct Round {
  Round(std::span<const Run> of, int n_bins, int lanes, int unit)
      : runs(of),
        steps(steps_for(of[0].count, unit)),
        first_bin(of.size()),
        lanes_of_(static_cast<std::size_t>(lanes)) {
    std::vector<bool> seen;
    for (std::size_t i = 0; i < runs.size(); ++i)
      for (seen.assign(lanes_of_.size(), false); !put(i, n_bins, seen);
           seen.assign(lanes_of_.size(), false))
        ++of_one_bank;
  }

  std::span<const Run> runs;
  int steps;
  std::vector<int> first_bin;  // per run
  int of_one_bank = 1;         // the most lanes that read from the same bank

 private:
  bool put(std::size_t i, int n_bins, std::vector<bool>& seen) {
    const Run& run = runs[i];
    const int low = std::max(0, run.first_bin - (steps - run.count));
    for (int at = std::min(run.first_bin, n_bins - steps); at >= low; --at) {
      const std::size_t bank = static_cast<std::size_t>(at) % lanes_of_.size();
      if (seen[bank]) continue;
      seen[bank] = true;
      std::vector<std::size_t>& there = lanes_of_[bank];
      std::size_t place = 0;
      if (std::ssize(there) < of_one_bank)
        place = (there.push_back(i), there.size() - 1);
      else
        while (place < there.size() && !put(there[place], n_bins, seen)) ++place;
      if (place == there.size()) continue;
      there[place] = i;
      first_bin[i] = at;
      return true;
    }
    return false;
  }

  std::vector<std::vector<std::size_t>> lanes_of_;  // per bank
};

std::vector<Round> rounds_of(std::span<const Run> runs, int n_bins, int lanes, int unit) {
  std::vector<Round> rounds;
  for (std::size_t i = 0; i < runs.size(); i += static_cast<std::size_t>(lanes))
    rounds.emplace_back(runs.subspan(i, std::min(runs.size() - i, static_cast<std::size_t>(lanes))),
                        n_bins, lanes, unit);
  return rounds;
}

// Accesses to shared memory per frame: power and weight for each step, and for each partial sum its
// description, its write and its read.
int cost(int steps, int of_one_bank) { return steps * (of_one_bank + 1) + 6; }

int cost(const std::vector<Round>& rounds) {
  int sum = 0;
  for (const Round& round : rounds) sum += cost(round.steps, round.of_one_bank);
  return sum;
}

// The cost if no two lanes read from the same bank.
int least_cost(std::span<const Run> runs, int lanes, int unit) {
  int sum = 0;
  for (std::size_t i = 0; i < runs.size(); i += static_cast<std::size_t>(lanes))
    sum += cost(steps_for(runs[i].count, unit), 1);
  return sum;
}

// Returns the cheapest runs.
std::vector<Run> best_cut(std::span<const Band> bands, int n_bins, int lanes, int unit) {
  constexpr unsigned variants = 64;
  int widest = 1, total = 0;
  for (const Band& band : bands) {
    widest = std::max(widest, band.count);
    total += band.count;
  }
  const int longest = std::min({widest, n_bins / unit * unit, most_in_a_row});
  // Pieces shorter than an eighth of a lane's share cost more in partial sums than they save by
  // balance, and no band should have more pieces than bins in a row.
  const int shortest = std::max({4, total / lanes / 8, widest / most_in_a_row});
  std::vector<Run> best = cut(bands, longest, 0);
  int least = cost(rounds_of(best, n_bins, lanes, unit));
  for (int most = longest; most >= shortest; --most) {
    for (unsigned variant = 0; variant < variants; ++variant) {
      std::vector<Run> runs = cut(bands, most, variant);
      if (least_cost(runs, lanes, unit) >= least) {
        if (variant == 0) break;
        continue;
      }
      const int its = cost(rounds_of(runs, n_bins, lanes, unit));
      if (its >= least) continue;
      least = its;
      best = std::move(runs);
    }
  }
  return best;
}

}  // namespace

BandTables::BandTables(std::span<const Band> bands, std::span<const float> weights, int n_bins,
                       int lanes, int unit) {
  const auto width = static_cast<std::size_t>(lanes), of_unit = static_cast<std::size_t>(unit);
  const std::vector<Run> runs = best_cut(bands, n_bins, lanes, unit);
  const std::vector<Round> rounds = rounds_of(runs, n_bins, lanes, unit);
  std::vector<int> runs_of(bands.size());
  for (const Run& run : runs) ++runs_of[static_cast<std::size_t>(run.band)];
  counts_.lanes = lanes;
  counts_.rounds = static_cast<int>(rounds.size());
  counts_.n_bands = static_cast<int>(bands.size());
  counts_.quads = (*std::max_element(runs_of.begin(), runs_of.end()) + 3) / 4;
  std::vector<bool> is_taken(static_cast<std::size_t>(counts_.partials()));
  for (const Round& round : rounds) {
    const std::size_t base = weights_.size();
    weights_.resize(base + static_cast<std::size_t>(round.steps) * width, 0.0F);
    steps_ += round.steps;
    wavefronts_ += round.steps * round.of_one_bank;
    int writers[32] = {};  // per bank
    for (std::size_t lane = 0; lane < width; ++lane) {
      Piece piece;
      piece.steps_and_partial = static_cast<std::uint32_t>(round.steps);
      if (lane < round.runs.size()) {
        const Run& run = round.runs[lane];
        piece.first_bin = round.first_bin[lane];
        for (int i = 0; i < run.count; ++i) {
          const auto k = static_cast<std::size_t>(run.first_bin - piece.first_bin + i);
          weights_[base + (k / of_unit * width + lane) * of_unit + k % of_unit] =
              weights[static_cast<std::size_t>(run.weights_at + i)];
        }
        // Chooses, among the band's free slots, one in the bank with the fewest writes.
        int chosen = -1;
        for (int i = 0; i < 4 * counts_.quads; ++i) {
          const int at = (i / 4 * counts_.n_bands + run.band) * 4 + i % 4;
          if (is_taken[static_cast<std::size_t>(at)]) continue;
          if (chosen < 0 || writers[at % 32] < writers[chosen % 32]) chosen = at;
        }
        is_taken[static_cast<std::size_t>(chosen)] = true;
        ++writers[chosen % 32];
        piece.steps_and_partial |= static_cast<std::uint32_t>(chosen) << Piece::step_bits;
      } else {
        piece.first_bin = round.first_bin[0];  // reads the same word as another lane
        const int at = counts_.quads * counts_.n_bands * 4 + counts_.idle++;
        piece.steps_and_partial |= static_cast<std::uint32_t>(at) << Piece::step_bits;
      }
      pieces_.push_back(piece);
    }
  }
  counts_.weights = static_cast<int>(weights_.size());
}

}  // namespace melflow::cuda
